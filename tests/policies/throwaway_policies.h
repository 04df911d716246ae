#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/select_topk.h"
#include "policies/registry/registry.h"

/// A small policy for each feature of the interface besides selection. They are not registered: tests of policies and
/// engine use them through the interface alone.
namespace kvscope::policies::throwaway {

/// Returns element (row, j, c) of a view of f32 or bf16 entries with head size d.
[[nodiscard]] inline float element(const EntriesView& view, int row, int64_t j, int64_t c, int64_t d) {
    const int64_t at = row * view.head_stride + j * d + c;
    if (view.dtype == kernels::DType::bf16) return kernels::to_float(static_cast<const kernels::bf16*>(view.data)[at]);
    return static_cast<const float*>(view.data)[at];
}

[[nodiscard]] inline std::vector<uint32_t> all_of(int64_t n) {
    std::vector<uint32_t> positions(static_cast<size_t>(n));
    std::iota(positions.begin(), positions.end(), 0u);
    return positions;
}

[[nodiscard]] inline std::vector<uint32_t> best_of(const std::vector<float>& scores, int64_t count) {
    std::vector<uint32_t> best(static_cast<size_t>(std::min<int64_t>(count, static_cast<int64_t>(scores.size()))));
    kernels::select_topk(scores.data(), static_cast<int64_t>(scores.size()), static_cast<int64_t>(best.size()),
                         best.data());
    return best;
}

/// Keeps the first B entries of every row.
class KeepFirst : public Policy {
 public:
    [[nodiscard]] Needs needs() const override {
        Needs needs;
        needs.entries = true;
        return needs;
    }
    void begin(const RunContext& context) override { context_ = context; }
    [[nodiscard]] Selection select(LayerObservations& observations) override {
        Selection selection;
        selection.rows.assign(static_cast<size_t>(context_.shape.n_kv_heads),
                              all_of(std::min(context_.budget, observations.n_tokens)));
        return selection;
    }

 protected:
    RunContext context_;
};

/// Appends the prompt's first tokens once more and ranks the prompt by their queries, like DapQ. Scores are their
/// attention over the prompt and the visible appended keys, summed over queries and group.
class AppendsFirst : public KeepFirst, public AppendsTokens {
 public:
    explicit AppendsFirst(const ParameterValues& values) : n_(values.integer("tokens")) {}

    [[nodiscard]] AppendedTokens appended(const RunContext& context) const override {
        AppendedTokens appended;
        for (int64_t i = 0; i < n_; ++i) {
            appended.ids.push_back(context.token_ids[static_cast<size_t>(i) % context.token_ids.size()]);
            appended.positions.push_back(context.n_tokens + i);
        }
        return appended;
    }

    [[nodiscard]] Selection select(LayerObservations& observations) override {
        const ModelShape& shape = observations.shape;
        const int64_t n = observations.n_tokens;
        Selection selection;
        std::vector<float> scores(static_cast<size_t>(shape.n_kv_heads * n));
        for (int head = 0; head < shape.n_heads; ++head) {
            float* row = scores.data() + head / shape.group() * n;
            for (int64_t i = 0; i < observations.n_appended(); ++i) {
                const std::vector<double> weights = attention(observations, head, i);
                for (int64_t j = 0; j < n; ++j) row[j] += static_cast<float>(weights[static_cast<size_t>(j)]);
            }
        }
        for (int g = 0; g < shape.n_kv_heads; ++g) {
            const std::vector<float> row(scores.begin() + g * n, scores.begin() + (g + 1) * n);
            selection.rows.push_back(best_of(row, context_.budget));
        }
        selection.scores = std::move(scores);
        return selection;
    }

    /// Softmax weights (N + i + 1) of appended query i over the prompt's keys and the appended ones up to its own.
    [[nodiscard]] static std::vector<double> attention(const LayerObservations& observations, int head, int64_t i) {
        const ModelShape& shape = observations.shape;
        const int64_t d = shape.head_dim, n = observations.n_tokens;
        const int group = head / shape.group();
        const float* query = observations.appended_queries().data() + (head * observations.n_appended() + i) * d;
        std::vector<double> weights(static_cast<size_t>(n + i + 1));
        for (int64_t j = 0; j < n + i + 1; ++j) {
            double dot = 0.0;
            for (int64_t c = 0; c < d; ++c) {
                dot += query[c] * (j < n ? element(observations.keys, group, j, c, d)
                                         : element(observations.appended_keys(), group, j - n, c, d));
            }
            weights[static_cast<size_t>(j)] = dot / std::sqrt(static_cast<double>(d));
        }
        const double largest = *std::max_element(weights.begin(), weights.end());
        double sum = 0.0;
        for (double& weight : weights) sum += weight = std::exp(weight - largest);
        for (double& weight : weights) weight /= sum;
        return weights;
    }

 private:
    int64_t n_;
};

/// Filters the prompt like GemFilter: after one layer, the tokens whose keys match the last query best (over all heads)
/// and the last token become the prompt.
class FiltersByKeys : public KeepFirst, public FiltersPrompt {
 public:
    explicit FiltersByKeys(const ParameterValues& values) : layer_(static_cast<int>(values.integer("layer"))) {}

    [[nodiscard]] Needs needs() const override {
        Needs needs = KeepFirst::needs();
        needs.window_queries = 1;
        return needs;
    }

    [[nodiscard]] PromptFilter filter(const RunContext& context) const override {
        return FilterLayer{std::min(layer_, context.shape.n_layers - 1)};
    }

    [[nodiscard]] Selection select(LayerObservations& observations) override {
        const ModelShape& shape = observations.shape;
        const int64_t n = observations.n_tokens, d = shape.head_dim;
        std::vector<float> scores(static_cast<size_t>(n), 0.0f);
        for (int head = 0; head < shape.n_heads; ++head) {
            const float* query =
                observations.window_queries.data() + (head * observations.n_window + observations.n_window - 1) * d;
            for (int64_t j = 0; j < n; ++j) {
                float dot = 0.0f;
                for (int64_t c = 0; c < d; ++c)
                    dot += query[c] * element(observations.keys, head / shape.group(), j, c, d);
                scores[static_cast<size_t>(j)] += dot;
            }
        }
        scores.back() = INFINITY;
        Selection selection;
        selection.rows.assign(static_cast<size_t>(shape.n_kv_heads), best_of(scores, context_.budget));
        return selection;
    }

 private:
    int layer_;
};

/// Base of policies that store kept entries in parts.
class StoresKept : public KeepFirst, public StoresParts {
 public:
    [[nodiscard]] bool stores_parts() const override { return true; }
    [[nodiscard]] Selection select(LayerObservations& observations) final {
        Selection selection = kept(observations);
        selection.stored = described(observations, selection);
        return selection;
    }

 protected:
    [[nodiscard]] virtual Selection kept(LayerObservations& observations) { return KeepFirst::select(observations); }
    [[nodiscard]] virtual StoredLayer described(LayerObservations&, const Selection&) = 0;
};

/// Gathers kept entries of one layer as f32 rows.
[[nodiscard]] inline std::vector<float> gathered(const EntriesView& view, int row, const std::vector<uint32_t>& kept,
                                                 int64_t d) {
    std::vector<float> out;
    for (uint32_t j : kept) {
        for (int64_t c = 0; c < d; ++c) out.push_back(element(view, row, j, c, d));
    }
    return out;
}

/// Stores the first B entries, with only every second key channel except in the last `exact` keys, like ThinK.
class StoresChannels : public StoresKept {
 public:
    explicit StoresChannels(const ParameterValues& values) : exact_(values.integer("exact")) {}

    [[nodiscard]] static std::vector<uint16_t> channels(int head_dim) {
        std::vector<uint16_t> channels;
        for (int c = 0; c < head_dim; c += 2) channels.push_back(static_cast<uint16_t>(c));
        return channels;
    }

    [[nodiscard]] StoredLayer described(LayerObservations& observations, const Selection& selection) override {
        const int d = observations.shape.head_dim;
        StoredLayer layer;
        for (const auto& kept : selection.rows) {
            const auto n_exact = std::min(static_cast<size_t>(exact_), kept.size());
            StoredRow& row = layer.rows.emplace_back();
            row.plain.assign(kept.end() - static_cast<std::ptrdiff_t>(n_exact), kept.end());
            if (n_exact == kept.size()) continue;
            StoredEntries& entries = row.stored.emplace_back();
            entries.positions.assign(kept.begin(), kept.end() - static_cast<std::ptrdiff_t>(n_exact));
            const auto some = channels(d);
            entries.keys.parts.push_back({.width = static_cast<int>(some.size()), .channels = some});
            entries.values.parts.push_back({.width = d});
        }
        return layer;
    }

 private:
    int64_t exact_;
};

/// Stores the first B entries as sums and differences with their mirror images, in two parts that two maps expand.
class StoresMapped : public StoresKept {
 public:
    explicit StoresMapped(const ParameterValues&) {}

    [[nodiscard]] StoredLayer described(LayerObservations& observations, const Selection& selection) override {
        const int d = observations.shape.head_dim;
        StoredLayer layer;
        for (size_t row = 0; row < selection.rows.size(); ++row) {
            const auto& kept = selection.rows[row];
            StoredEntries entries{.positions = kept, .masses = {}, .keys = {}, .values = {}};
            entries.keys.parts = parts(gathered(observations.keys, static_cast<int>(row), kept, d), d);
            entries.values.parts = parts(gathered(observations.values, static_cast<int>(row), kept, d), d);
            layer.rows.push_back({.stored = {std::move(entries)}, .plain = {}, .token_entry = {}});
        }
        return layer;
    }

 private:
    /// Returns x_c and x_{d-1-c} as their sum (first part) and difference (second part).
    [[nodiscard]] static std::vector<StoredPart> parts(const std::vector<float>& vectors, int d) {
        const int half = d / 2;
        auto sum = std::make_shared<Matrix>(Matrix{half, d, std::vector<float>(static_cast<size_t>(half * d))});
        auto difference = std::make_shared<Matrix>(*sum);
        StoredPart sums{.width = half}, differences{.width = half};
        for (int c = 0; c < half; ++c) {
            const auto itself = static_cast<size_t>(c * d + c), mirror = static_cast<size_t>(c * d + d - 1 - c);
            sum->numbers[itself] = sum->numbers[mirror] = 0.5f;
            difference->numbers[itself] = 0.5f;
            difference->numbers[mirror] = -0.5f;
        }
        for (size_t at = 0; at < vectors.size(); at += static_cast<size_t>(d)) {
            for (int c = 0; c < half; ++c) {
                const float x = vectors[at + static_cast<size_t>(c)], y = vectors[at + static_cast<size_t>(d - 1 - c)];
                sums.numbers.push_back(x + y);
                differences.numbers.push_back(x - y);
            }
        }
        sums.map = std::move(sum);
        differences.map = std::move(difference);
        return {sums, differences};
    }
};

/// Stores the first B entries: those at even positions in two blocks that all heads share, with keys before RoPE, those
/// at odd positions as direction and length, and the last three whole.
class StoresShared : public StoresKept {
 public:
    explicit StoresShared(const ParameterValues&) {}

    [[nodiscard]] Needs needs() const override {
        Needs needs = StoresKept::needs();
        needs.keys_before_rope = true;
        return needs;
    }

    [[nodiscard]] StoredLayer described(LayerObservations& observations, const Selection& selection) override {
        const int d = observations.shape.head_dim, heads = observations.shape.n_kv_heads;
        StoredLayer layer;
        const auto& kept = selection.rows[0];
        const std::vector<uint32_t> whole(kept.end() - 3, kept.end());
        std::vector<uint32_t> even, odd;
        for (size_t i = 0; i + 3 < kept.size(); ++i) (kept[i] % 2 == 0 ? even : odd).push_back(kept[i]);
        const auto keys = block(observations.keys_before_rope, even, heads, d);
        const auto values = block(observations.values, even, heads, d);
        layer.blocks = {keys, values};
        for (int head = 0; head < heads; ++head) {
            StoredEntries shared{.positions = even, .masses = {}, .keys = {}, .values = {}};
            shared.keys = {.parts = {{.width = d, .block = keys, .first_column = head * d}}, .before_rope = true};
            auto map = std::make_shared<Matrix>(Matrix{heads * d, d, {}});
            map->numbers.resize(static_cast<size_t>(heads * d * d));
            for (int c = 0; c < d; ++c) map->numbers[static_cast<size_t>((head * d + c) * d + c)] = 1;
            shared.values = {.parts = {{.width = heads * d, .block = values, .map = std::move(map)}}};
            StoredEntries scaled{.positions = odd, .masses = {}, .keys = {}, .values = {}};
            scaled.keys.parts = {direction(gathered(observations.keys, head, odd, d), d)};
            scaled.values.parts = {direction(gathered(observations.values, head, odd, d), d)};
            layer.rows.push_back({.stored = {std::move(shared), std::move(scaled)}, .plain = whole, .token_entry = {}});
        }
        return layer;
    }

 private:
    [[nodiscard]] static std::shared_ptr<const StoredBlock> block(const EntriesView& view,
                                                                  const std::vector<uint32_t>& positions, int heads,
                                                                  int d) {
        auto block = std::make_shared<StoredBlock>();
        block->width = heads * d;
        for (const uint32_t position : positions)
            for (int head = 0; head < heads; ++head)
                for (int c = 0; c < d; ++c) block->numbers.push_back(element(view, head, position, c, d));
        return block;
    }

    [[nodiscard]] static StoredPart direction(std::vector<float> vectors, int d) {
        StoredPart part{.width = d};
        for (size_t at = 0; at < vectors.size(); at += static_cast<size_t>(d)) {
            double squares = 0;
            for (size_t c = 0; c < static_cast<size_t>(d); ++c) squares += double{vectors[at + c]} * vectors[at + c];
            part.scales.push_back(static_cast<float>(std::sqrt(squares)));
            for (size_t c = 0; c < static_cast<size_t>(d); ++c) vectors[at + c] /= part.scales.back();
        }
        part.numbers = std::move(vectors);
        return part;
    }
};

/// Merges the first 2 B entries in pairs, like KVSlimmer: the key is the mean, the value the sum, the mass 2, and the
/// position that of the second token. A single remaining entry stays whole.
class MergesPairs : public StoresKept {
 public:
    explicit MergesPairs(const ParameterValues&) {}

    [[nodiscard]] Selection kept(LayerObservations& observations) override {
        std::vector<uint32_t> last;
        const auto n = static_cast<uint32_t>(std::min(2 * context_.budget, observations.n_tokens));
        for (uint32_t i = 0; i < n; i += 2) last.push_back(std::min(i + 1, n - 1));
        Selection selection;
        selection.rows.assign(static_cast<size_t>(context_.shape.n_kv_heads), last);
        return selection;
    }

    [[nodiscard]] StoredLayer described(LayerObservations& observations, const Selection& selection) override {
        const int d = observations.shape.head_dim;
        StoredLayer layer;
        for (size_t row = 0; row < selection.rows.size(); ++row) {
            const auto& last = selection.rows[row];
            StoredEntries entries{.positions = {}, .masses = {}, .keys = {{{.width = d}}}, .values = {{{.width = d}}}};
            StoredRow& stored = layer.rows.emplace_back();
            for (const uint32_t position : last) {
                if (position % 2 == 0) {
                    stored.plain.push_back(position);
                    continue;
                }
                const std::vector<uint32_t> pair{position - 1, position};
                const auto keys = gathered(observations.keys, static_cast<int>(row), pair, d);
                const auto values = gathered(observations.values, static_cast<int>(row), pair, d);
                for (size_t c = 0; c < static_cast<size_t>(d); ++c) {
                    entries.keys.parts[0].numbers.push_back(0.5f * (keys[c] + keys[c + static_cast<size_t>(d)]));
                    entries.values.parts[0].numbers.push_back(values[c] + values[c + static_cast<size_t>(d)]);
                }
                entries.positions.push_back(position);
                entries.masses.push_back(2.0f);
            }
            if (!entries.positions.empty()) stored.stored.push_back(std::move(entries));
            stored.token_entry.assign(static_cast<size_t>(observations.n_tokens), -1);
            for (uint32_t token = 0; token <= last.back(); ++token)
                stored.token_entry[token] = static_cast<int32_t>(token / 2);
        }
        return layer;
    }
};

/// Starts with the first B entries and, at every step, drops the entry with the least attention from each row, but
/// never the newest.
class DropsLeastAttended : public KeepFirst, public EvictsWhileDecoding {
 public:
    explicit DropsLeastAttended(const ParameterValues&) {}
    [[nodiscard]] StepEvictions step(const StepObservations& observations) override {
        StepEvictions evictions;
        for (const StepObservations::Row& row : observations.rows) {
            evictions.emplace_back();
            const size_t n = row.positions.size();
            if (static_cast<int64_t>(n) <= context_.budget) continue;
            size_t least = 0;
            for (size_t i = 0; i + 1 < n; ++i) {
                if (attention(row, i) < attention(row, least)) least = i;
            }
            evictions.back().push_back(static_cast<uint32_t>(least));
        }
        return evictions;
    }

    [[nodiscard]] static float attention(const StepObservations::Row& row, size_t entry) {
        float sum = 0.0f;
        for (int q = 0; q < row.n_query_heads; ++q)
            sum += row.attention[static_cast<size_t>(q) * row.positions.size() + entry];
        return sum;
    }
};

template <class Made>
// NOLINTNEXTLINE(performance-unnecessary-value-param): moved
[[nodiscard]] Definition definition(const char* name, std::vector<Parameter> parameters = {}) {
    return {.name = name,
            .title = name,
            .paper = "",
            .summary = "A test's own policy.",
            .parameters = std::move(parameters),
            .create = make_policy<Made>};
}

/// All these policies, with defaults for small models.
[[nodiscard]] inline const std::vector<Definition>& definitions() {
    static const std::vector<Definition> all{
        definition<AppendsFirst>("appends-tokens",
                                 {integer_parameter("tokens", 3, {.low = 1}, "Number of appended tokens.")}),
        definition<FiltersByKeys>("filters-prompt",
                                  {integer_parameter("layer", 1, {.low = 0}, "Layer whose keys choose the tokens.")}),
        definition<StoresChannels>("stores-channels",
                                   {integer_parameter("exact", 8, {.low = 0}, "Entries at the end that stay whole.")}),
        definition<StoresMapped>("stores-mapped"),
        definition<StoresShared>("stores-shared"),
        definition<MergesPairs>("merges-pairs"),
        definition<DropsLeastAttended>("drops-least-attended"),
    };
    return all;
}

[[nodiscard]] inline PolicySpec spec(const char* name) {
    for (const Definition& candidate : definitions()) {
        if (candidate.name == name) return {&candidate, ParameterValues(candidate.parameters)};
    }
    throw ParameterError(std::string("no throw-away policy ") + name);
}

}  // namespace kvscope::policies::throwaway
