#include "engine/decode.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>

#include "engine/guarded.h"
#include "kernels/attention_decode.h"
#include "kernels/bf16.h"
#include "kernels/rope.h"
#include "policies/interface/validation.h"

namespace kvscope::engine {
namespace {

/// One feed: the rows of all sequences' tokens, in order.
class Feed {
 public:
    Feed(const Transformer& model, std::span<Sequence> sequences, std::span<const std::span<const int32_t>> tokens,
         const FeedOptions& options)
        : model_(model), sequences_(sequences), options_(options), shape_(model.shape()) {
        std::vector<int32_t> ids;
        std::vector<int64_t> positions;
        for (size_t s = 0; s < sequences.size(); ++s) {
            if (sequences[s].acting && tokens[s].size() > 1)
                throw std::logic_error("a policy that acts while decoding is fed one token at a time");
            first_row_.push_back(static_cast<int64_t>(ids.size()));
            for (size_t t = 0; t < tokens[s].size(); ++t) {
                ids.push_back(tokens[s][t]);
                positions.push_back(sequences[s].position + static_cast<int64_t>(t));
            }
        }
        first_row_.push_back(static_cast<int64_t>(ids.size()));
        residual_ = model.embed(ids);
        rotation_ = model.rotation(positions);
    }

    at::Tensor run() {
        for (int layer = 0; layer < shape_.n_layers; ++layer) run_layer(layer);
        for (size_t s = 0; s < sequences_.size(); ++s) {
            if (sequences_[s].failed()) continue;
            sequences_[s].position += n_tokens(s);
            sequences_[s].step += n_tokens(s);
        }
        return residual_;
    }

 private:
    size_t element() const { return kernels::size_of(model_.dtype()); }
    int64_t d() const { return shape_.head_dim; }
    char* at(const at::Tensor& tensor, int64_t row, int64_t column) const {
        return static_cast<char*>(tensor.data_ptr()) + static_cast<size_t>(row * tensor.size(1) + column) * element();
    }
    int64_t n_tokens(size_t s) const { return first_row_[s + 1] - first_row_[s]; }

    void rotate_heads(void* data, int n_heads, int64_t by) const {
        const auto rotation = model_.rotation(std::span<const int64_t>(&by, 1));
        kernels::rope({.dtype = model_.dtype(),
                       .n_tokens = 1,
                       .n_heads = n_heads,
                       .head_dim = shape_.head_dim,
                       .x = data,
                       .token_stride = n_heads * d(),
                       .cosines = rotation.cosines.const_data_ptr<float>(),
                       .sines = rotation.sines.const_data_ptr<float>()});
    }

    void run_layer(int layer) {
        at::Tensor qkv = model_.project(layer, residual_);
        const bool any_renumbers = std::any_of(sequences_.begin(), sequences_.end(),
                                               [](const auto& sequence) { return sequence.cache->renumbers(); });
        plain_ = any_renumbers || options_.record_plain ? qkv.clone() : qkv;
        model_.rotate(qkv, rotation_);
        at::Tensor out = at::empty({qkv.size(0), int64_t{shape_.n_heads} * d()}, qkv.options());
        rows_.clear();
        f32_.clear();
        scratch_ = {};
        comparisons_.clear();
        observed_.clear();
        for (size_t s = 0; s < sequences_.size(); ++s) read_or_fail(layer, s, qkv, out);
        attend();
        compare(layer);
        act(layer);
        for (size_t s = 0; s < options_.records.size(); ++s) {
            const auto queries_of = [&](const at::Tensor& rows) {
                return rows.narrow(0, first_row_[s], n_tokens(s)).narrow(1, 0, shape_.n_heads * d()).clone();
            };
            options_.records[s].queries.push_back(queries_of(qkv));
            if (options_.record_plain) options_.records[s].plain_queries.push_back(queries_of(plain_));
            options_.records[s].outputs.push_back(out.narrow(0, first_row_[s], n_tokens(s)).clone());
        }
        model_.finish_layer(layer, out, residual_);
    }

    /// What a sequence does in a layer. Its failure is its own.
    template <class Action>
    void attempt(int layer, size_t s, Action action) {
        if (sequences_[s].failed()) return;
        const std::string error = failure_of(action);
        if (!error.empty()) sequences_[s].error = "layer " + std::to_string(layer) + ": " + error;
    }

    void read_or_fail(int layer, size_t s, at::Tensor& qkv, at::Tensor& out) {
        const size_t n_rows = rows_.size(), n_f32 = f32_.size(), n_comparisons = comparisons_.size(),
                     n_observed = observed_.size();
        attempt(layer, s, [&] { read(layer, s, qkv, out); });
        if (!sequences_[s].failed()) return;
        // Nothing of it is attended to; zeros go through the rest of the model in place of what it would have found.
        rows_.resize(n_rows);
        f32_.resize(n_f32);
        comparisons_.resize(n_comparisons);
        observed_.resize(n_observed);
        out.narrow(0, first_row_[s], n_tokens(s)).zero_();
    }

    /// Appends a sequence's keys and values to its cache and queues the attention over it.
    void read(int layer, size_t s, at::Tensor& qkv, at::Tensor& out) {
        auto& cache = *sequences_[s].cache;
        const int n_rows = cache.n_rows();
        const int queries = shape_.n_heads / n_rows;
        const int group = n_rows / shape_.n_kv_heads;
        const int64_t window = model_.config().sliding_window[static_cast<size_t>(layer)];
        for (int64_t t = 0; t < n_tokens(s); ++t) {
            const int64_t row = first_row_[s] + t;
            for (int r = 0; r < n_rows; ++r) {
                const int64_t key_column = (int64_t{shape_.n_heads} + r / group) * d();
                const int64_t value_column = key_column + int64_t{shape_.n_kv_heads} * d();
                const int64_t query_column = int64_t{r} * queries * d();
                int64_t position = sequences_[s].position + t;
                if (cache.renumbers()) {
                    position = cache.n_entries(layer, r);
                    std::vector<char> key(at(plain_, row, key_column), at(plain_, row, key_column + d()));
                    rotate_heads(key.data(), 1, position);
                    std::copy(at(plain_, row, query_column), at(plain_, row, query_column + queries * d()),
                              at(qkv, row, query_column));
                    rotate_heads(at(qkv, row, query_column), queries, position);
                    cache.append(layer, r, key.data(), at(qkv, row, value_column), sequences_[s].position + t);
                } else {
                    cache.append(layer, r, at(qkv, row, key_column), at(qkv, row, value_column), position);
                }
                const auto view = cache.view(layer, r, cache.n_entries(layer, r), position, window, scratch_);
                float* weights = nullptr;
                if (sequences_[s].acting) {
                    auto& observed = observed_.emplace_back();
                    observed.first = view.first;
                    observed.n_visible = view.n_entries;
                    observed.attention.resize(static_cast<size_t>(queries * view.n_entries));
                    weights = observed.attention.data();
                }
                queue(view, at(qkv, row, query_column), queries, at(out, row, query_column), weights);
                if (options_.compare) queue_comparison(layer, s, t, r, queries, position, view);
            }
        }
    }

    void queue(const RunCache::RowView& view, const void* q, int queries, void* out, float* weights) {
        kernels::DecodeRow row{.q = q,
                               .q_stride = d(),
                               .n_queries = queries,
                               .k = view.keys,
                               .v = view.values,
                               .kv_stride = d(),
                               .n_entries = view.n_entries,
                               .cardinality = view.cardinality,
                               .out = out,
                               .out_stride = d(),
                               .attention = weights};
        if (view.is_f32 && model_.dtype() != kernels::DType::f32) {
            const auto n = static_cast<size_t>(queries * d());
            auto& buffer = scratch_.buffers.emplace_back(std::make_unique<float[]>(2 * n));
            for (size_t c = 0; c < n; ++c) buffer[c] = kernels::to_float(static_cast<const kernels::bf16*>(q)[c]);
            row.q = buffer.get();
            row.out = buffer.get() + n;
            f32_.push_back({row, static_cast<kernels::bf16*>(out)});
        } else {
            rows_.push_back(row);
        }
    }

    void queue_comparison(int layer, size_t s, int64_t t, int r, int queries, int64_t position,
                          const RunCache::RowView& view) {
        const auto& reference = *options_.compare;
        const int64_t token = options_.reference_first + t;
        const int64_t column = int64_t{r} * queries * d();
        const auto& source = reference.queries[static_cast<size_t>(layer)];
        auto& comparison = comparisons_.emplace_back();
        comparison.sequence = s;
        comparison.first_head = r * queries;
        comparison.n_heads = queries;
        comparison.expected = at(reference.outputs[static_cast<size_t>(layer)], token, column);
        comparison.arrays = std::make_unique<char[]>(2 * static_cast<size_t>(queries * d()) * element());
        char* q = comparison.arrays.get();
        comparison.found = q + static_cast<size_t>(queries * d()) * element();
        std::copy(at(source, token, column), at(source, token, column + queries * d()), q);
        const int64_t turn = position - (reference.first_position + token);
        if (turn != 0) rotate_heads(q, queries, turn);
        queue(view, q, queries, comparison.found, nullptr);
    }

    void attend() {
        kernels::attention_decode(rows_, shape_.head_dim, model_.dtype(), model_.attention_scale());
        if (f32_.empty()) return;
        std::vector<kernels::DecodeRow> rows;
        for (const auto& row : f32_) rows.push_back(row.row);
        kernels::attention_decode(rows, shape_.head_dim, kernels::DType::f32, model_.attention_scale());
        for (const auto& row : f32_) {
            const auto* from = static_cast<const float*>(row.row.out);
            for (int64_t c = 0; c < row.row.n_queries * d(); ++c) row.target[c] = kernels::bf16_from_float(from[c]);
        }
    }

    float value(const char* data, int64_t i) const {
        return model_.dtype() == kernels::DType::bf16
                   ? kernels::to_float(reinterpret_cast<const kernels::bf16*>(data)[i])
                   : reinterpret_cast<const float*>(data)[i];
    }

    void compare(int layer) {
        for (const auto& comparison : comparisons_) {
            auto& errors = options_.errors[comparison.sequence];
            for (int h = 0; h < comparison.n_heads; ++h) {
                double difference = 0, norm = 0;
                for (int64_t c = 0; c < d(); ++c) {
                    const double expected = value(comparison.expected, h * d() + c);
                    const double delta = value(comparison.found, h * d() + c) - expected;
                    difference += delta * delta;
                    norm += expected * expected;
                }
                if (norm > 0)
                    errors[static_cast<size_t>(layer * shape_.n_heads + comparison.first_head + h)] +=
                        std::sqrt(difference / norm);
            }
        }
    }

    void act(int layer) {
        size_t next = 0;
        for (size_t s = 0; s < sequences_.size(); ++s) {
            auto& sequence = sequences_[s];
            if (!sequence.acting || sequence.failed()) continue;
            auto& cache = *sequence.cache;
            const int queries = shape_.n_heads / cache.n_rows();
            policies::StepObservations observations;
            observations.layer = layer;
            observations.step = sequence.step;
            observations.position = sequence.position;
            for (int r = 0; r < cache.n_rows(); ++r) {
                auto& observed = observed_[next++];
                observed.show_hidden(queries);
                observations.rows.push_back({cache.positions(layer, r), observed.attention, queries});
            }
            attempt(layer, s, [&] {
                const auto evictions = sequence.acting->step(observations);
                policies::require_evictions(sequence.run, observations, evictions);
                for (size_t r = 0; r < evictions.size(); ++r) cache.erase(layer, static_cast<int>(r), evictions[r]);
            });
        }
    }

    struct Observed {
        std::vector<float> attention;  // (queries, visible entries), then (queries, entries)
        int64_t first = 0;
        int64_t n_visible = 0;

        /// Entries behind a sliding window get the weight 0.
        void show_hidden(int queries) {
            if (first == 0) return;
            std::vector<float> all(static_cast<size_t>(queries * (first + n_visible)));
            for (int q = 0; q < queries; ++q)
                std::copy_n(attention.begin() + q * n_visible, n_visible,
                            all.begin() + q * (first + n_visible) + first);
            attention = std::move(all);
        }
    };
    struct F32Row {
        kernels::DecodeRow row;
        kernels::bf16* target;
    };
    struct Comparison {
        size_t sequence = 0;
        int first_head = 0;
        int n_heads = 0;
        const char* expected = nullptr;
        char* found = nullptr;
        std::unique_ptr<char[]> arrays;
    };

    const Transformer& model_;
    std::span<Sequence> sequences_;
    const FeedOptions& options_;
    policies::ModelShape shape_;
    std::vector<int64_t> first_row_;
    at::Tensor residual_;
    at::Tensor plain_;  // of the layer before rotation, for caches that renumber and for records
    Transformer::Rotation rotation_;
    std::vector<kernels::DecodeRow> rows_;
    std::vector<F32Row> f32_;
    std::vector<Comparison> comparisons_;
    std::deque<Observed> observed_;
    RunCache::Scratch scratch_;
};

}  // namespace

at::Tensor feed(const Transformer& model, std::span<Sequence> sequences,
                std::span<const std::span<const int32_t>> tokens, const FeedOptions& options) {
    return Feed(model, sequences, tokens, options).run();
}

}  // namespace kvscope::engine
