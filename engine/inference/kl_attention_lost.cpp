#include "engine/inference/kl_attention_lost.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/common/error.h"
#include "engine/files/parallel.h"
#include "kernels/linear.h"

namespace kvscope::engine {
namespace {

constexpr size_t tokens_per_task = 256;
constexpr int64_t queries_at_once = 64;

/// The full cache's attention while it reads its own answer, of one KV head and some queries after another.
class AnswerWeights {
 public:
    AnswerWeights(const Transformer& model, const RunCache& full, const FullReference& answer, int64_t n_context)
        : model_(model),
          shape_(model.shape()),
          full_(full),
          answer_(answer),
          n_context_(n_context),
          n_keys_(n_context + answer.keys_behind[0].size(1)),
          logits_(at::empty({queries_at_once, shape_.group(), n_keys_}, at::kFloat)),
          weights_(at::empty_like(logits_)) {}

    /// (n, H / G, n_keys) of queries [first, first + n), n at most queries_at_once: row t is of the query behind which
    /// token first + t + 1 is drawn. Valid until the next call.
    at::Tensor of(int layer, int head, int64_t first, int64_t n) {
        const int64_t d = shape_.head_dim, group = shape_.group();
        const at::Tensor queries = answer_.attention.queries[static_cast<size_t>(layer)]
                                       .narrow(0, first, n)
                                       .cpu()
                                       .view({n, shape_.n_heads, d})
                                       .narrow(1, head * group, group)
                                       .to(model_.scalar_type())
                                       .contiguous();
        const at::Tensor& behind = answer_.keys_behind[static_cast<size_t>(layer)];
        at::Tensor logits = logits_.narrow(0, 0, n), weights = weights_.narrow(0, 0, n);
        const at::Tensor keys = full_.keys_on_processor(layer, head, n_context_);
        multiply(queries, keys.const_data_ptr(), n_context_, logits, 0);
        multiply(queries, behind[head].const_data_ptr(), behind.size(1), logits, n_context_);
        logits.mul_(model_.attention_scale());
        hide(layer, first, logits);
        at::softmax_out(weights, logits, 2);
        return weights;
    }

 private:
    void multiply(const at::Tensor& queries, const void* keys, int64_t n, at::Tensor& logits, int64_t first) const {
        kernels::linear({.dtype = model_.dtype(),
                         .n_rows = queries.size(0) * queries.size(1),
                         .in = shape_.head_dim,
                         .out = n,
                         .x = queries.const_data_ptr(),
                         .weight = keys,
                         .y = logits.data_ptr<float>() + first,
                         .y_stride = logits.size(2)});
    }

    /// What a query does not see: later tokens, and those that the layer's sliding window has left behind.
    void hide(int layer, int64_t first, at::Tensor& logits) const {
        const int64_t window = model_.config().sliding_window[static_cast<size_t>(layer)];
        for (int64_t t = 0; t < logits.size(0); ++t) {
            const int64_t position = answer_.attention.first_position + first + t;
            auto row = logits[t];
            row.narrow(1, position + 1, n_keys_ - position - 1).fill_(-std::numeric_limits<float>::infinity());
            if (window > 0 && position >= window)
                row.narrow(1, 0, position + 1 - window).fill_(-std::numeric_limits<float>::infinity());
        }
    }

    const Transformer& model_;
    policies::ModelShape shape_;
    const RunCache& full_;
    const FullReference& answer_;
    int64_t n_context_, n_keys_;
    at::Tensor logits_, weights_;
};

bool is_finite(std::span<const float> values) {
    return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

/// The steps' KL times a query head's weights of the tokens from `first` on, summed; four steps at a time.
void sum_up(std::span<const float> step_kl, const float* from, int64_t stride, std::span<float> sums) {
    for (size_t t = 0; t < step_kl.size(); t += 4, from += 4 * stride) {
        std::array<float, 4> kl{};
        std::array<const float*, 4> rows;
        for (size_t k = 0; k < 4; ++k) {
            const bool is_there = t + k < step_kl.size();
            if (is_there) kl[k] = step_kl[t + k];
            rows[k] = is_there ? from + static_cast<int64_t>(k) * stride : from;
        }
        for (size_t i = 0; i < sums.size(); ++i)
            sums[i] += (kl[0] * rows[0][i] + kl[1] * rows[1][i]) + (kl[2] * rows[2][i] + kl[3] * rows[3][i]);
    }
}

/// Adds to `lost` (N) what a KV head's query heads lose of the tokens first ... last - 1 at some steps.
/// @param step_kl of the steps whose tokens are drawn behind the weights' queries
void add_lost(const ComparedRun& run, std::span<const float> step_kl, const at::Tensor& weights, int layer,
              size_t first_head, size_t n_heads, std::pair<size_t, size_t> tokens, std::span<double> lost) {
    const auto [first, last] = tokens;
    const int64_t n_keys = weights.size(2), group = weights.size(1);
    for (int64_t q = 0; q < group; ++q) {
        std::array<float, tokens_per_task> sums{};
        sum_up(step_kl, weights.const_data_ptr<float>() + q * n_keys + static_cast<int64_t>(first), group * n_keys,
               std::span(sums).first(last - first));
        const size_t row = (first_head + static_cast<size_t>(q)) / (n_heads / run.kept.n_rows);
        const auto held = run.kept.held(static_cast<size_t>(layer), row);
        for (auto at = std::lower_bound(held.begin(), held.end(), first); at != held.end() && *at < last; ++at)
            sums[*at - first] = 0;
        for (size_t i = 0; i < last - first; ++i) lost[first + i] += static_cast<double>(sums[i]);
    }
}

}  // namespace

ComparedRun::ComparedRun(const trace::RunRecord& record, std::span<const float> kl, int n_layers) : step_kl(kl) {
    kept.n_layers = static_cast<size_t>(n_layers);
    kept.n_rows = (record.kept_offsets.size() - 1) / kept.n_layers;
    kept.offsets = record.kept_offsets;
    kept.indices = record.kept_indices;
    kept.token_entry = record.merged_token_entry;
    if (kept.merges()) kept.find_held_tokens();
}

at::Tensor keys_from(const Transformer& model, const RunCache& cache, int layer, int64_t first) {
    const auto shape = model.shape();
    const int64_t n = cache.n_entries(layer, 0), d = shape.head_dim;
    at::Tensor keys = at::empty({shape.n_kv_heads, n - first, d}, at::TensorOptions().dtype(model.scalar_type()));
    for (int head = 0; head < shape.n_kv_heads; ++head)
        keys[head].copy_(cache.keys_on_processor(layer, head, n).narrow(0, first, n - first));
    return keys;
}

std::vector<std::vector<float>> kl_attention_lost(const Transformer& model, const RunCache& full,
                                                  const FullReference& answer, int64_t n_context,
                                                  std::span<const ComparedRun> runs, Progress& progress) {
    const auto shape = model.shape();
    const auto n = static_cast<size_t>(n_context), n_heads = static_cast<size_t>(shape.n_heads);
    const auto n_queries = static_cast<int64_t>(answer.tokens.size()) - 1;
    const size_t blocks = (n + tokens_per_task - 1) / tokens_per_task;
    AnswerWeights weights(model, full, answer, n_context);
    std::vector<std::vector<float>> all(runs.size());
    progress.begin("attention lost", shape.n_layers);
    for (int layer = 0; layer < shape.n_layers; ++layer) {
        std::vector<std::vector<double>> lost(runs.size(), std::vector<double>(n, 0.0));
        for (int head = 0; head < shape.n_kv_heads; ++head) {
            const auto first_head = static_cast<size_t>(head * shape.group());
            for (int64_t query = 0; query < n_queries; query += queries_at_once) {
                if (progress.cancelled()) throw Cancelled();
                const int64_t count = std::min(queries_at_once, n_queries - query);
                const at::Tensor found = weights.of(layer, head, query, count);
                // A task's weights stay near the processor for all runs.
                checkpoint::parallel_for<char>(static_cast<int64_t>(blocks), [&](int64_t block, char&) {
                    const size_t first = static_cast<size_t>(block) * tokens_per_task;
                    for (size_t i = 0; i < runs.size(); ++i)
                        add_lost(runs[i],
                                 runs[i].step_kl.subspan(static_cast<size_t>(query) + 1, static_cast<size_t>(count)),
                                 found, layer, first_head, n_heads, {first, std::min(n, first + tokens_per_task)},
                                 lost[i]);
                });
            }
        }
        for (size_t i = 0; i < runs.size(); ++i)
            for (const double value : lost[i])
                all[i].push_back(static_cast<float>(value / static_cast<double>(n_heads)));
        progress.advance(layer + 1);
    }
    for (size_t i = 0; i < runs.size(); ++i)
        if (!is_finite(runs[i].step_kl)) all[i].clear();
    return all;
}

}  // namespace kvscope::engine
