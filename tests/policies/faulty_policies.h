#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/policies/throwaway_policies.h"

/// Policies that go wrong where a policy can: the engine has to take them out and to go on with the others.
namespace kvscope::policies::throwaway {

/// Entries as they were given, until a fault.
class FaultyStore : public LayerStore {
 public:
    FaultyStore(int64_t d, std::string fault, int64_t after) : d_(d), fault_(std::move(fault)), after_(after) {}

    void add_row(const std::vector<float>& keys, const std::vector<float>& values) { rows_.push_back({keys, values}); }

    int64_t n_entries(int row) const override {
        if (fault_ == "no-entries" && is_due()) return 0;
        return static_cast<int64_t>(rows_.at(static_cast<size_t>(row)).keys.size()) / d_;
    }
    size_t bytes(int row) const override {
        if (fault_ == "bytes") throw std::runtime_error("bytes: the test wants it");
        const auto& entries = rows_.at(static_cast<size_t>(row));
        return (entries.keys.size() + entries.values.size()) * sizeof(float);
    }
    void append(int row, const float* key, const float* value) override {
        if ((fault_ == "append" || (fault_ == "append-again" && !is_copy_)) && is_due())
            throw std::runtime_error("append: the test wants it");
        auto& entries = rows_.at(static_cast<size_t>(row));
        entries.keys.insert(entries.keys.end(), key, key + d_);
        entries.values.insert(entries.values.end(), value, value + d_);
        if (row == 0) ++n_appended_;
    }
    void read(int row, float* keys, float* values, float* cardinalities) const override {
        if (fault_ == "read" && is_due()) throw std::runtime_error("read: the test wants it");
        const auto& entries = rows_.at(static_cast<size_t>(row));
        std::copy(entries.keys.begin(), entries.keys.end(), keys);
        std::copy(entries.values.begin(), entries.values.end(), values);
        std::fill_n(cardinalities, entries.keys.size() / static_cast<size_t>(d_), 1.0f);
        if (fault_ == "nan" && is_due()) values[0] = std::nanf("");
    }
    std::unique_ptr<LayerStore> clone() const override {
        if (fault_ == "clone") throw std::runtime_error("clone: the test wants it");
        auto copy = std::make_unique<FaultyStore>(*this);
        copy->is_copy_ = true;
        return copy;
    }

 private:
    bool is_due() const { return n_appended_ > after_; }

    struct Row {
        std::vector<float> keys, values;
    };
    int64_t d_;
    std::string fault_;
    int64_t after_;
    int64_t n_appended_ = 0;
    bool is_copy_ = false;
    std::vector<Row> rows_;
};

/// Keeps the first B entries and goes wrong as `fault` says, behind `after` tokens where that is one while decoding.
class Faulty : public KeepFirst {
 public:
    explicit Faulty(const ParameterValues& values) : fault_(values.text("fault")), after_(values.integer("after")) {}

    void begin(const RunContext& context) override {
        if (fault_ == "begin") throw std::runtime_error("begin: the test wants it");
        KeepFirst::begin(context);
    }

    PassPlan plan(const RunContext& context) const override {
        PassPlan plan;
        if (fault_ == "draft" || fault_ == "draft-out-of-range") plan.lookahead = 2;
        if (fault_ == "filter-unsorted" || fault_ == "filter-rows") plan.filter_layer = context.shape.n_layers - 1;
        return plan;
    }

    Selection draft(LayerObservations& observations) override {
        if (fault_ == "draft") throw std::runtime_error("draft: the test wants it");
        Selection selection = KeepFirst::select(observations);
        if (fault_ == "draft-out-of-range") selection.rows.back().back() += 1000000;
        return selection;
    }

    Selection select(LayerObservations& observations) override {
        if (fault_ == "select" && observations.layer == 1) throw std::runtime_error("select: the test wants it");
        if (fault_ == "nothing-said" && observations.layer == 1) throw std::runtime_error("");
        return damaged(KeepFirst::select(observations));
    }
    Selection select_from_scores(int layer, LayerScores) override {
        LayerObservations observations;
        observations.layer = layer;
        observations.n_tokens = context_.n_tokens;
        return damaged(KeepFirst::select(observations));
    }

    std::unique_ptr<LayerStore> store(LayerObservations& observations, const Selection& selection) override {
        for (const char* own : {"append", "append-again", "read", "nan", "clone", "bytes", "no-entries", "store"}) {
            if (fault_ != own) continue;
            if (fault_ == "store") throw std::runtime_error("store: the test wants it");
            const int64_t d = observations.shape.head_dim;
            auto store = std::make_unique<FaultyStore>(d, fault_, after_);
            for (int row = 0; row < observations.shape.n_kv_heads; ++row) {
                const auto& kept = selection.rows[static_cast<size_t>(row)];
                store->add_row(gathered(observations.keys, row, kept, d), gathered(observations.values, row, kept, d));
            }
            return store;
        }
        return nullptr;
    }

    bool merges_values() const override { return fault_ == "merge"; }
    void merge_values(LayerObservations&, const Selection&, int, std::span<float>) override {
        throw std::runtime_error("merge: the test wants it");
    }

    bool acts_while_decoding() const override { return fault_.starts_with("step") || fault_.starts_with("evict"); }
    StepEvictions step(const StepObservations& observations) override {
        if (observations.step == 0 && observations.layer == 0) ++n_answers_;
        StepEvictions evictions(observations.rows.size());
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
    Selection damaged(Selection selection) const {
        auto& last = selection.rows.back();
        if (fault_ == "out-of-range") last.back() = static_cast<uint32_t>(context_.n_tokens);
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

    std::string fault_;
    int64_t after_;
    int n_answers_ = 0;
};

inline const Definition& faulty_definition() {
    static const Definition faulty =
        definition<Faulty>("faulty", {text_parameter("fault", "none", "Where it goes wrong."),
                                      integer_parameter("after", 0, {.low = 0}, "Tokens decoded until it does.")});
    return faulty;
}

/// "fault=step,after=2"
inline PolicySpec faulty(const std::string& parameters) { return parse_parameters(faulty_definition(), parameters); }

}  // namespace kvscope::policies::throwaway
