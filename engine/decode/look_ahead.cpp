#include "engine/decode/look_ahead.h"

#include <algorithm>

#include "engine/common/engine_error.h"
#include "engine/decode/decode.h"
#include "engine/decode/sampler.h"
#include "engine/device/catch_single_run_failure.h"
#include "engine/device/tensor_functions.h"

namespace kvscope::engine {
namespace {

std::vector<float> by_head(const std::vector<at::Tensor>& steps, const policies::ModelShape& shape) {
    const auto n = static_cast<int64_t>(steps.size());
    const at::Tensor all =
        at::cat(steps).cpu().to(at::kFloat).view({n, shape.n_heads, shape.head_dim}).permute({1, 0, 2}).contiguous();
    return {all.const_data_ptr<float>(), all.const_data_ptr<float>() + all.numel()};
}

at::Tensor last_keys(const Transformer& model, const RunCache& cache, int layer, int64_t n) {
    const auto shape = model.shape();
    at::Tensor keys = at::empty({shape.n_kv_heads, n, shape.head_dim}, model.options());
    const size_t entry = static_cast<size_t>(shape.head_dim) * kernels::size_of(model.dtype());
    RunCache::Scratch scratch;
    std::vector<kernels::RowCopy> copies;
    for (int g = 0; g < shape.n_kv_heads; ++g) {
        const int row = g * (cache.n_rows() / shape.n_kv_heads);
        const int64_t n_entries = cache.n_entries(layer, row);
        const auto view = cache.view(layer, row, n_entries, 0, 0, scratch);
        copies.push_back({.from = static_cast<const char*>(view.keys) + static_cast<size_t>(n_entries - n) * entry,
                          .from_stride = entry,
                          .to = static_cast<char*>(keys.data_ptr()) + static_cast<size_t>(g * n) * entry,
                          .to_stride = entry,
                          .n_rows = n,
                          .row_bytes = entry});
    }
    model.backend().copy_rows(copies);
    return keys;
}

}  // namespace

std::vector<LookAhead> look_ahead(const Transformer& model, std::span<RunCache* const> drafts,
                                  std::span<const int64_t> n_tokens, int64_t position,
                                  std::span<const float> last_logits, Progress& progress) {
    const auto shape = model.shape();
    const auto n_layers = static_cast<size_t>(shape.n_layers);
    std::vector<LookAhead> results(drafts.size());
    std::vector<Sequence> sequences;
    std::vector<std::vector<std::vector<at::Tensor>>> queries(drafts.size(),
                                                              std::vector<std::vector<at::Tensor>>(n_layers));
    for (size_t i = 0; i < drafts.size(); ++i) {
        drafts[i]->reserve(n_tokens[i]);
        sequences.push_back({drafts[i], position});
    }
    const auto draw = [&](size_t i, std::span<const float> logits) {
        results[i].error = catch_single_run_failure([&] { results[i].ids.push_back(greedy_token(logits)); });
    };
    for (size_t i = 0; i < drafts.size(); ++i) draw(i, last_logits);
    HostBuffer room;
    const int64_t most = n_tokens.empty() ? 0 : *std::max_element(n_tokens.begin(), n_tokens.end());
    progress.begin("lookahead", most, "tokens");
    for (int64_t step = 0; step < most; ++step) {
        progress.throw_if_stopped();
        std::vector<size_t> active;
        std::vector<Sequence> batch;
        std::vector<std::span<const int32_t>> tokens;
        for (size_t i = 0; i < drafts.size(); ++i) {
            if (step >= n_tokens[i] || !results[i].error.empty()) continue;
            active.push_back(i);
            batch.push_back(sequences[i]);
            tokens.emplace_back(&results[i].ids.back(), 1);
        }
        if (batch.empty()) break;
        std::vector<AttentionReference> records(batch.size());
        const at::Tensor logits =
            model.logits(feed_tokens(model, batch, tokens, {.records = records, .errors = {}}), room);
        for (size_t b = 0; b < active.size(); ++b) {
            const size_t i = active[b];
            sequences[i] = batch[b];
            for (size_t layer = 0; layer < n_layers; ++layer) queries[i][layer].push_back(records[b].queries[layer]);
            const float* row = logits.const_data_ptr<float>() + static_cast<int64_t>(b) * logits.size(1);
            results[i].error = batch[b].error;
            if (step + 1 < n_tokens[i] && results[i].error.empty()) draw(i, {row, static_cast<size_t>(logits.size(1))});
        }
        progress.advance(step + 1);
    }
    for (size_t i = 0; i < drafts.size(); ++i) {
        for (size_t layer = 0; layer < n_layers && results[i].error.empty(); ++layer) {
            results[i].queries.push_back(by_head(queries[i][layer], shape));
            results[i].keys.push_back(last_keys(model, *drafts[i], static_cast<int>(layer), n_tokens[i]));
        }
    }
    return results;
}

}  // namespace kvscope::engine
