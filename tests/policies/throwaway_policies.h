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
#include "policies/interface/registry.h"

/// One small policy for each shape that is not plain selection. They are in no list: the interface alone has to carry
/// them, for which the tests of policies and engine use them.
namespace kvscope::policies::throwaway {

/// Element (row, j, c) of a view of f32 or bf16 entries of size d.
inline float element(const EntriesView& view, int row, int64_t j, int64_t c, int64_t d) {
    const int64_t at = row * view.head_stride + j * d + c;
    if (view.dtype == kernels::DType::bf16) return kernels::to_float(static_cast<const kernels::bf16*>(view.data)[at]);
    return static_cast<const float*>(view.data)[at];
}

inline std::vector<uint32_t> all_of(int64_t n) {
    std::vector<uint32_t> positions(static_cast<size_t>(n));
    std::iota(positions.begin(), positions.end(), 0u);
    return positions;
}

inline std::vector<uint32_t> best_of(const std::vector<float>& scores, int64_t count) {
    std::vector<uint32_t> best(static_cast<size_t>(std::min<int64_t>(count, static_cast<int64_t>(scores.size()))));
    kernels::select_topk(scores.data(), static_cast<int64_t>(scores.size()), static_cast<int64_t>(best.size()),
                         best.data());
    return best;
}

/// The first n entries of every row, n = B: what the others compress.
class KeepFirst : public Policy {
 public:
    Needs needs() const override { return {}; }
    void begin(const RunContext& context) override { context_ = context; }
    Selection select(LayerObservations& observations) override {
        Selection selection;
        selection.rows.assign(static_cast<size_t>(context_.shape.n_kv_heads),
                              all_of(std::min(context_.budget, observations.n_tokens)));
        return selection;
    }

 protected:
    RunContext context_;
};

/// Changes the pass: the prompt's first tokens once more behind the prompt, whose queries rank it (DapQ's shape). Score
/// of a prompt entry: attention of these queries, the softmax over the prompt and the appended keys each of them sees,
/// summed over queries and group; the best B stay.
class AppendsTokens : public KeepFirst {
 public:
    explicit AppendsTokens(const ParameterValues& values) : n_(values.integer("tokens")) {}

    PassPlan plan(const RunContext& context) const override {
        PassPlan plan;
        for (int64_t i = 0; i < n_; ++i) {
            plan.appended_ids.push_back(context.token_ids[static_cast<size_t>(i) % context.token_ids.size()]);
            plan.appended_positions.push_back(context.n_tokens + i);
        }
        return plan;
    }

    Selection select(LayerObservations& observations) override {
        const ModelShape& shape = observations.shape;
        const int64_t n = observations.n_tokens;
        Selection selection;
        selection.scores.assign(static_cast<size_t>(shape.n_kv_heads * n), 0.0f);
        for (int head = 0; head < shape.n_heads; ++head) {
            float* row = selection.scores.data() + head / shape.group() * n;
            for (int64_t i = 0; i < observations.n_appended(); ++i) {
                const std::vector<double> weights = attention(observations, head, i);
                for (int64_t j = 0; j < n; ++j) row[j] += static_cast<float>(weights[static_cast<size_t>(j)]);
            }
        }
        for (int g = 0; g < shape.n_kv_heads; ++g) {
            const std::vector<float> row(selection.scores.begin() + g * n, selection.scores.begin() + (g + 1) * n);
            selection.rows.push_back(best_of(row, context_.budget));
        }
        return selection;
    }

    /// Softmax weights (N + i + 1) of appended query i over the prompt's keys and the appended ones up to its own.
    static std::vector<double> attention(const LayerObservations& observations, int head, int64_t i) {
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

/// Changes the pass: after one layer the tokens whose keys the last query matches best (over all heads) become the
/// prompt, the last token always among them, and the model runs again on them (GemFilter's shape).
class FiltersPrompt : public KeepFirst {
 public:
    explicit FiltersPrompt(const ParameterValues& values) : layer_(static_cast<int>(values.integer("layer"))) {}

    Needs needs() const override {
        Needs needs;
        needs.window_queries = 1;
        return needs;
    }

    PassPlan plan(const RunContext& context) const override {
        PassPlan plan;
        plan.filter_layer = std::min(layer_, context.shape.n_layers - 1);
        return plan;
    }

    Selection select(LayerObservations& observations) override {
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

/// Kept entries of one layer gathered to f32 rows.
inline std::vector<float> gathered(const EntriesView& view, int row, const std::vector<uint32_t>& kept, int64_t d) {
    std::vector<float> out;
    for (uint32_t j : kept) {
        for (int64_t c = 0; c < d; ++c) out.push_back(element(view, row, j, c, d));
    }
    return out;
}

/// Keys and values as int8 with one scale per vector; about a quarter of f32's bytes.
class Int8Store : public LayerStore {
 public:
    explicit Int8Store(int64_t d) : d_(d) {}

    void add_row(const std::vector<float>& keys, const std::vector<float>& values) {
        rows_.emplace_back();
        for (size_t at = 0; at < keys.size(); at += static_cast<size_t>(d_)) {
            append(static_cast<int>(rows_.size()) - 1, keys.data() + at, values.data() + at);
        }
    }

    int64_t n_entries(int row) const override { return static_cast<int64_t>(rows_.at(row).key_scales.size()); }

    size_t bytes(int row) const override {
        const Row& r = rows_.at(row);
        return r.keys.size() + r.values.size() + (r.key_scales.size() + r.value_scales.size()) * sizeof(float);
    }

    void append(int row, const float* key, const float* value) override {
        Row& r = rows_.at(row);
        r.key_scales.push_back(quantize(key, r.keys));
        r.value_scales.push_back(quantize(value, r.values));
    }

    void read(int row, float* keys, float* values, float* cardinalities) const override {
        const Row& r = rows_.at(row);
        for (size_t i = 0; i < r.key_scales.size(); ++i) {
            for (size_t c = 0; c < static_cast<size_t>(d_); ++c) {
                keys[i * d_ + c] = r.keys[i * d_ + c] * r.key_scales[i];
                values[i * d_ + c] = r.values[i * d_ + c] * r.value_scales[i];
            }
            cardinalities[i] = 1.0f;
        }
    }

    std::unique_ptr<LayerStore> clone() const override { return std::make_unique<Int8Store>(*this); }

 private:
    struct Row {
        std::vector<int8_t> keys, values;
        std::vector<float> key_scales, value_scales;
    };

    float quantize(const float* vector, std::vector<int8_t>& out) const {
        float largest = 0.0f;
        for (int64_t c = 0; c < d_; ++c) largest = std::max(largest, std::abs(vector[c]));
        const float scale = largest > 0.0f ? largest / 127.0f : 1.0f;
        for (int64_t c = 0; c < d_; ++c) out.push_back(static_cast<int8_t>(std::lround(vector[c] / scale)));
        return scale;
    }

    int64_t d_;
    std::vector<Row> rows_;
};

/// Changes the representation: the first B entries, in int8.
class StoresInt8 : public KeepFirst {
 public:
    explicit StoresInt8(const ParameterValues&) {}
    std::unique_ptr<LayerStore> store(LayerObservations& observations, const Selection& selection) override {
        const int64_t d = observations.shape.head_dim;
        auto store = std::make_unique<Int8Store>(d);
        for (int row = 0; row < observations.shape.n_kv_heads; ++row) {
            const std::vector<uint32_t>& kept = selection.rows[static_cast<size_t>(row)];
            store->add_row(gathered(observations.keys, row, kept, d), gathered(observations.values, row, kept, d));
        }
        return store;
    }
};

/// Neighbours merged two by two: the key is their mean, the value their sum, the cardinality 2 (KVSlimmer's form). A
/// single one left over and decoded entries stay plain.
class MergedStore : public LayerStore {
 public:
    explicit MergedStore(int64_t d) : d_(d) {}

    void add_row(const std::vector<float>& keys, const std::vector<float>& values) {
        rows_.emplace_back();
        Row& r = rows_.back();
        const size_t d = static_cast<size_t>(d_), n = keys.size() / d;
        for (size_t i = 0; i < n; i += 2) {
            const bool pair = i + 1 < n;
            for (size_t c = 0; c < d; ++c) {
                r.keys.push_back(pair ? 0.5f * (keys[i * d + c] + keys[(i + 1) * d + c]) : keys[i * d + c]);
                r.values.push_back(pair ? values[i * d + c] + values[(i + 1) * d + c] : values[i * d + c]);
            }
            r.cardinalities.push_back(pair ? 2.0f : 1.0f);
        }
    }

    int64_t n_entries(int row) const override { return static_cast<int64_t>(rows_.at(row).cardinalities.size()); }

    size_t bytes(int row) const override {
        const Row& r = rows_.at(row);
        return (r.keys.size() + r.values.size() + r.cardinalities.size()) * sizeof(float);
    }

    void append(int row, const float* key, const float* value) override {
        Row& r = rows_.at(row);
        r.keys.insert(r.keys.end(), key, key + d_);
        r.values.insert(r.values.end(), value, value + d_);
        r.cardinalities.push_back(1.0f);
    }

    void read(int row, float* keys, float* values, float* cardinalities) const override {
        const Row& r = rows_.at(row);
        std::copy(r.keys.begin(), r.keys.end(), keys);
        std::copy(r.values.begin(), r.values.end(), values);
        std::copy(r.cardinalities.begin(), r.cardinalities.end(), cardinalities);
    }

    std::unique_ptr<LayerStore> clone() const override { return std::make_unique<MergedStore>(*this); }

 private:
    struct Row {
        std::vector<float> keys, values, cardinalities;
    };
    int64_t d_;
    std::vector<Row> rows_;
};

/// Changes the representation: the first B entries, merged in pairs.
class MergesPairs : public KeepFirst {
 public:
    explicit MergesPairs(const ParameterValues&) {}
    std::unique_ptr<LayerStore> store(LayerObservations& observations, const Selection& selection) override {
        const int64_t d = observations.shape.head_dim;
        auto store = std::make_unique<MergedStore>(d);
        for (int row = 0; row < observations.shape.n_kv_heads; ++row) {
            const std::vector<uint32_t>& kept = selection.rows[static_cast<size_t>(row)];
            store->add_row(gathered(observations.keys, row, kept, d), gathered(observations.values, row, kept, d));
        }
        return store;
    }
};

/// Acts while decoding: starts with the first B entries and, at every step, drops from each row the entry with the
/// least attention of that step, so that B stay; the newest never goes.
class DropsLeastAttended : public KeepFirst {
 public:
    explicit DropsLeastAttended(const ParameterValues&) {}
    bool acts_while_decoding() const override { return true; }
    StepEvictions step(const StepObservations& observations) override {
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

    static float attention(const StepObservations::Row& row, size_t entry) {
        float sum = 0.0f;
        for (int q = 0; q < row.n_query_heads; ++q)
            sum += row.attention[static_cast<size_t>(q) * row.positions.size() + entry];
        return sum;
    }
};

template <class Made>
Definition definition(const char* name, std::vector<Parameter> parameters = {}) {
    return {.name = name,
            .title = name,
            .paper = "",
            .summary = "A test's own policy.",
            .parameters = std::move(parameters),
            .create = [](const ParameterValues& values) -> std::unique_ptr<Policy> {
                return std::make_unique<Made>(values);
            }};
}

/// All of them, with defaults that fit small models.
inline const std::vector<Definition>& definitions() {
    static const std::vector<Definition> all{
        definition<AppendsTokens>("appends-tokens",
                                  {integer_parameter("tokens", 3, {.low = 1}, "Tokens put behind the prompt.")}),
        definition<FiltersPrompt>("filters-prompt",
                                  {integer_parameter("layer", 1, {.low = 0}, "Layer whose keys choose the tokens.")}),
        definition<StoresInt8>("stores-int8"),
        definition<MergesPairs>("merges-pairs"),
        definition<DropsLeastAttended>("drops-least-attended"),
    };
    return all;
}

inline PolicySpec spec(const char* name) {
    for (const Definition& candidate : definitions()) {
        if (candidate.name == name) return {&candidate, ParameterValues(candidate.parameters)};
    }
    throw ParameterError(std::string("no throw-away policy ") + name);
}

}  // namespace kvscope::policies::throwaway
