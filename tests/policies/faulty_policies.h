#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/policies/throwaway_policies.h"

/// Policies with faults at various points. The engine must fail their runs and continue with the others.
namespace kvscope::policies::throwaway {

/// Keeps the first B entries and fails as `fault` says, after `after` decoded tokens or answers.
class Faulty : public KeepFirst {
 public:
    explicit Faulty(const ParameterValues& values) : fault_(values.text("fault")), after_(values.integer("after")) {}

    void begin(const RunContext& context) override {
        if (fault_ == "begin") throw std::runtime_error("begin: the test wants it");
        KeepFirst::begin(context);
    }

    [[nodiscard]] Selection select(LayerObservations& observations) override {
        if ((fault_ == "select" || fault_ == "beside-select") && observations.layer == 1)
            throw std::runtime_error("select: the test wants it");
        if (fault_ == "select-in-head" && observations.layer == 1)
            throw std::runtime_error("layer 1, head 0: the test wants it");
        if (fault_ == "nothing-said" && observations.layer == 1) throw std::runtime_error("");
        Selection selection = KeepFirst::select(observations);
        if (fault_ == "nan" || fault_.starts_with("stored-")) selection.stored = stored(observations, selection);
        return damaged(std::move(selection));
    }
    [[nodiscard]] Selection select_from_scores(int layer, LayerScores) override {
        LayerObservations observations;
        observations.layer = layer;
        observations.n_tokens = context_.n_tokens;
        return damaged(KeepFirst::select(observations));
    }

 protected:
    std::string fault_;
    int64_t after_;

 private:
    [[nodiscard]] StoredLayer stored(LayerObservations& observations, const Selection& selection) const {
        const int d = observations.shape.head_dim;
        StoredLayer layer;
        for (size_t row = 0; row < selection.rows.size(); ++row) {
            const auto& kept = selection.rows[row];
            StoredEntries entries{.positions = kept,
                                  .masses = std::vector<float>(kept.size(), 1.0f),
                                  .keys = {{{.width = d}}},
                                  .values = {{{.width = d}}}};
            entries.values.parts[0].numbers = gathered(observations.values, static_cast<int>(row), kept, d);
            layer.rows.push_back({.stored = {std::move(entries)}, .plain = {}, .token_entry = {}});
        }
        damage(layer, d);
        return layer;
    }

    void damage(StoredLayer& layer, int d) const {
        StoredRow& row = layer.rows.back();
        StoredEntries& entries = row.stored.back();
        StoredPart& key = entries.keys.parts.back();
        StoredPart& value = entries.values.parts.back();
        if (fault_ == "nan") value.numbers[0] = std::nanf("");
        if (fault_ == "stored-rows") layer.rows.pop_back();
        if (fault_ == "stored-fewer") entries.positions.pop_back(), entries.masses.pop_back(), value.numbers.clear();
        if (fault_ == "stored-elsewhere") entries.positions.back() += 1;
        if (fault_ == "stored-out-of-range") entries.positions.back() = 4000000000u;
        if (fault_ == "stored-twice") row.plain.push_back(entries.positions.back());
        if (fault_ == "stored-nothing") row.stored.emplace_back();
        if (fault_ == "stored-no-parts") entries.keys.parts.clear();
        if (fault_ == "stored-width") key.width = d + 1;
        if (fault_ == "stored-width-0") key.width = 0;
        if (fault_ == "stored-numbers") value.numbers.pop_back();
        if (fault_ == "stored-masses") entries.masses.pop_back();
        if (fault_ == "stored-mass") entries.masses.back() = 0;
        if (fault_ == "stored-channel") key = {.width = 1, .channels = {static_cast<uint16_t>(d)}};
        if (fault_ == "stored-channels") key = {.width = 2, .channels = {3, 3}};
        if (fault_ == "stored-map") value.map = std::make_shared<Matrix>(Matrix{d, d - 1, {}});
        const auto n = static_cast<size_t>(context_.n_tokens);
        if (fault_.starts_with("stored-token")) {
            row.token_entry.resize(n, -1);
            for (size_t i = 0; i < entries.positions.size(); ++i) row.token_entry[entries.positions[i]] = int32_t(i);
        }
        if (fault_ == "stored-tokens") row.token_entry.push_back(-1);
        if (fault_ == "stored-token-range") row.token_entry.back() = static_cast<int32_t>(entries.positions.size());
        if (fault_ == "stored-token-behind") row.token_entry.back() = 0;
        if (fault_ == "stored-token-lost") row.token_entry[entries.positions[0]] = -1;
        if (fault_ == "stored-map-alone") key.map = std::make_shared<Matrix>(Matrix{d, d, {}});
    }

    [[nodiscard]] Selection damaged(Selection selection) const {
        auto& last = selection.rows.back();
        if (fault_ == "out-of-range" || fault_ == "beside-out-of-range")
            last.back() = static_cast<uint32_t>(context_.n_tokens);
        if (fault_ == "far-out-of-range") last.back() = 4000000000u;
        if (fault_ == "unsorted" || fault_ == "filter-unsorted") std::swap(last[0], last[1]);
        if (fault_ == "twice") last[1] = last[0];
        if (fault_ == "row-more") selection.rows.push_back(last);
        if (fault_ == "row-less") selection.rows.pop_back();
        if (fault_ == "no-rows") selection.rows.clear();
        if (fault_ == "filter-rows") selection.rows.back().pop_back();
        if (fault_ == "scores") selection.scores.assign(7, 1.0f);
        return selection;
    }
};

struct FaultyGathering : Faulty, Gathers {
    using Faulty::Faulty;
    void gather(LayerObservations& observations) override {
        if (fault_ == "gather" && observations.layer == 1) throw std::runtime_error("gather: the test wants it");
    }
};

struct FaultyDraft : Faulty, LooksAhead {
    using Faulty::Faulty;
    [[nodiscard]] int64_t lookahead() const override { return 2; }
    [[nodiscard]] Selection draft(LayerObservations& observations) override {
        if (fault_ != "draft-out-of-range") throw std::runtime_error("draft: the test wants it");
        // NOLINTNEXTLINE(bugprone-parent-virtual-call): Faulty adds a fault
        Selection selection = KeepFirst::select(observations);
        selection.rows.back().back() += 1000000;
        return selection;
    }
};

struct FaultyGatheredDraft : FaultyDraft, Gathers {
    using FaultyDraft::FaultyDraft;
    void gather(LayerObservations&) override {}
};

struct FaultyFilter : Faulty, FiltersPrompt {
    using Faulty::Faulty;
    [[nodiscard]] PromptFilter filter(const RunContext& context) const override {
        return FilterLayer{context.shape.n_layers - 1};
    }
};

struct FaultyStorage : Faulty, StoresParts {
    using Faulty::Faulty;
    [[nodiscard]] bool stores_parts() const override { return true; }
};

struct FaultyMerging : Faulty, MergesValues {
    using Faulty::Faulty;
    void merge_values(LayerObservations&, const Selection&, int, std::span<float>) override {
        throw std::runtime_error("merge: the test wants it");
    }
};

class FaultyEviction : public Faulty, public EvictsWhileDecoding {
 public:
    using Faulty::Faulty;
    [[nodiscard]] StepEvictions step(const StepObservations& observations) override {
        if (observations.step == 0 && observations.layer == 0) ++n_answers_;
        StepEvictions evictions(observations.rows.size());
        if (fault_ == "step-later" && n_answers_ > after_) throw std::runtime_error("step later: the test wants it");
        if (observations.step < after_) return evictions;
        if (fault_ == "step") throw std::runtime_error("step: the test wants it");
        if (fault_ == "step-again" && n_answers_ > 1) throw std::runtime_error("step again: the test wants it");
        const auto n = static_cast<uint32_t>(observations.rows[0].positions.size());
        if (fault_ == "evict-out-of-range") evictions.back() = {0, n};
        if (fault_ == "evict-unsorted") evictions.back() = {1, 0};
        if (fault_ == "evict-twice") evictions.back() = {1, 1};
        if (fault_ == "evict-rows") evictions.emplace_back(std::vector<uint32_t>{0});
        return evictions;
    }

 private:
    int n_answers_ = 0;
};

[[nodiscard]] inline CreatedPolicy make_faulty(const ParameterValues& values) {
    const std::string& fault = values.text("fault");
    if (fault == "beside-draft") return make_policy<FaultyGatheredDraft>(values);
    if (fault == "gather" || fault.starts_with("beside-")) return make_policy<FaultyGathering>(values);
    if (fault.starts_with("draft")) return make_policy<FaultyDraft>(values);
    if (fault.starts_with("filter-")) return make_policy<FaultyFilter>(values);
    if (fault == "stored-unsaid") return make_policy<Faulty>(values);
    if (fault == "nan" || fault.starts_with("stored-")) return make_policy<FaultyStorage>(values);
    if (fault == "merge") return make_policy<FaultyMerging>(values);
    if (fault.starts_with("step") || fault.starts_with("evict")) return make_policy<FaultyEviction>(values);
    return make_policy<Faulty>(values);
}

[[nodiscard]] inline const Definition& faulty_definition() {
    static const Definition faulty = [] {
        Definition made = definition<Faulty>(
            "faulty", {text_parameter("fault", "none", "Point of the failure."),
                       integer_parameter("after", 0, {.low = 0}, "Number of tokens decoded before the failure.")});
        made.create = make_faulty;
        return made;
    }();
    return faulty;
}

/// @param parameters "fault=step,after=2"
[[nodiscard]] inline PolicySpec faulty(const std::string& parameters) {
    return parse_parameters(faulty_definition(), parameters);
}

}  // namespace kvscope::policies::throwaway
