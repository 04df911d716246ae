#include "engine/decode/kl_of_dropped_tokens.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/common/engine_error.h"
#include "engine/device/tensor_functions.h"
#include "kernels/linear.h"
#include "kernels/threads/parallel_with_scratch.h"

namespace kvscope::engine {
namespace {

constexpr int64_t queries_at_once = 64;

/// The full run's attention weights while it reads its answer, for one KV head and a block of queries.
class AnswerWeights {
 public:
    AnswerWeights(const Transformer& model, const RunCache& full, const FullReference& answer, int64_t n_context)
        : model_(model),
          shape_(model.shape()),
          full_(full),
          answer_(answer),
          n_context_(n_context),
          n_keys_(n_context + answer.later_keys[0].size(1)),
          logits_(at::empty({shape_.group() * n_keys_ * queries_at_once}, at::kFloat)),
          weights_(at::empty_like(logits_)) {}

    /// Returns the weights (H / G, n_keys, n) of n <= queries_at_once queries, valid until the next call.
    at::Tensor of(int layer, int head, int64_t first, int64_t n) {
        const int64_t d = shape_.head_dim, group = shape_.group();
        const at::Tensor queries = answer_.attention.queries[static_cast<size_t>(layer)]
                                       .narrow(0, first, n)
                                       .cpu()
                                       .view({n, shape_.n_heads, d})
                                       .narrow(1, head * group, group)
                                       .to(model_.scalar_type())
                                       .transpose(0, 1)
                                       .contiguous();
        const at::Tensor& behind = answer_.later_keys[static_cast<size_t>(layer)];
        at::Tensor logits = part_of(logits_, n), weights = part_of(weights_, n);
        const at::Tensor keys = full_.keys_on_processor(layer, head, n_context_);
        for (int64_t q = 0; q < group; ++q) {
            float* of_head = logits[q].data_ptr<float>();
            multiply(keys.const_data_ptr(), n_context_, queries[q], of_head);
            multiply(behind[head].const_data_ptr(), behind.size(1), queries[q], of_head + n_context_ * n);
        }
        logits.mul_(model_.attention_scale());
        hide(layer, first, logits);
        at::softmax_out(weights, logits, 1);
        return weights;
    }

 private:
    at::Tensor part_of(const at::Tensor& all, int64_t n) const {
        return all.narrow(0, 0, shape_.group() * n_keys_ * n).view({shape_.group(), n_keys_, n});
    }

    void multiply(const void* keys, int64_t n_keys, const at::Tensor& queries, float* logits) const {
        kernels::linear({.dtype = model_.dtype(),
                         .n_rows = n_keys,
                         .in = shape_.head_dim,
                         .out = queries.size(0),
                         .x = keys,
                         .weight = queries.const_data_ptr(),
                         .y = logits});
    }

    void hide(int layer, int64_t first, at::Tensor& logits) const {
        constexpr float unseen = -std::numeric_limits<float>::infinity();
        const int64_t window = model_.config().sliding_window[static_cast<size_t>(layer)], n = logits.size(2);
        for (int64_t q = 0; q < logits.size(0); ++q) {
            float* of_head = logits[q].data_ptr<float>();
            for (int64_t t = 0; t < n; ++t) {
                const int64_t position = answer_.attention.first_position + first + t;
                for (int64_t key = position + 1; key < n_keys_; ++key) of_head[key * n + t] = unseen;
                for (int64_t key = 0; window > 0 && key <= position - window; ++key) of_head[key * n + t] = unseen;
            }
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

/// Returns the KL divergence of each run (runs, n) at the n steps after step `first`.
std::vector<float> kl_of(std::span<const ComparedRun> runs, int64_t first, int64_t n) {
    std::vector<float> kl;
    for (const ComparedRun& run : runs) {
        const auto steps = run.step_kl.subspan(static_cast<size_t>(first) + 1, static_cast<size_t>(n));
        kl.insert(kl.end(), steps.begin(), steps.end());
    }
    return kl;
}

/// Adds the weights in `seen` (N) of dropped tokens to `lost` (N). Sets the weights of kept tokens to 0.
void add_lost(const ComparedRun& run, int layer, size_t query_head, size_t n_heads, std::span<float> seen,
              std::span<double> lost) {
    for (const auto held : run.kept.held(static_cast<size_t>(layer), query_head / (n_heads / run.kept.n_rows))) {
        if (held >= seen.size()) break;
        seen[held] = 0;
    }
    for (size_t i = 0; i < seen.size(); ++i) lost[i] += static_cast<double>(seen[i]);
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

at::Tensor copy_keys_from_position(const Transformer& model, const RunCache& cache, int layer, int64_t first) {
    const auto shape = model.shape();
    const int64_t n = cache.n_entries(layer, 0), d = shape.head_dim;
    at::Tensor keys = at::empty({shape.n_kv_heads, n - first, d}, at::TensorOptions().dtype(model.scalar_type()));
    for (int head = 0; head < shape.n_kv_heads; ++head)
        keys[head].copy_(cache.keys_on_processor(layer, head, n).narrow(0, first, n - first));
    return keys;
}

std::vector<std::vector<float>> attribute_kl_to_dropped_tokens(const Transformer& model, const RunCache& full,
                                                               const FullReference& answer, int64_t n_context,
                                                               std::span<const ComparedRun> runs, Progress& progress) {
    const auto shape = model.shape();
    const auto n = static_cast<size_t>(n_context), n_heads = static_cast<size_t>(shape.n_heads);
    const auto n_queries = static_cast<int64_t>(answer.tokens.size()) - 1;
    const auto n_runs = static_cast<int64_t>(runs.size());
    std::vector<float> seen(static_cast<size_t>(shape.group()) * runs.size() * n);  // KL times attention weight
    AnswerWeights weights(model, full, answer, n_context);
    std::vector<std::vector<float>> all(runs.size());
    progress.begin("attention lost", shape.n_layers, "layers");
    for (int layer = 0; layer < shape.n_layers; ++layer) {
        std::vector<std::vector<double>> lost(runs.size(), std::vector<double>(n, 0.0));
        for (int head = 0; head < shape.n_kv_heads; ++head) {
            const auto first_head = static_cast<size_t>(head * shape.group());
            for (int64_t query = 0; query < n_queries; query += queries_at_once) {
                progress.throw_if_stopped();
                const int64_t count = std::min(queries_at_once, n_queries - query);
                const at::Tensor found = weights.of(layer, head, query, count);
                const std::vector<float> kl = kl_of(runs, query, count);
                for (int64_t q = 0; q < shape.group(); ++q)
                    kernels::linear({.dtype = kernels::DType::f32,
                                     .n_rows = n_runs,
                                     .in = count,
                                     .out = n_context,
                                     .x = kl.data(),
                                     .weight = found[q].const_data_ptr(),
                                     .y = seen.data() + q * n_runs * n_context});
                kernels::parallel_with_scratch<char>(n_runs, [&](int64_t i, char&) {
                    for (int64_t q = 0; q < shape.group(); ++q)
                        add_lost(runs[static_cast<size_t>(i)], layer, first_head + static_cast<size_t>(q), n_heads,
                                 std::span(seen).subspan(static_cast<size_t>((q * n_runs + i) * n_context), n),
                                 lost[static_cast<size_t>(i)]);
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
