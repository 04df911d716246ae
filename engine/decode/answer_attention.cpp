#include "engine/decode/answer_attention.h"

#include <algorithm>

#include "engine/device/tensor_functions.h"
#include "kernels/reduce_heads.h"
#include "kernels/window_attention.h"

namespace kvscope::engine {

std::vector<float> answer_attention(const Transformer& model, const RunCache& full, const FullReference& answer,
                                    int64_t n_context) {
    const auto shape = model.shape();
    const int64_t d = shape.head_dim;
    const auto n_answer = static_cast<int64_t>(answer.tokens.size());
    const int64_t n_queries = std::max<int64_t>(n_answer - 1, 1);
    const auto element = static_cast<int64_t>(kernels::size_of(model.dtype()));
    std::vector<float> attention;
    attention.reserve(static_cast<size_t>(shape.n_layers * shape.n_heads * n_context));
    for (int layer = 0; layer < shape.n_layers; ++layer) {
        const int64_t n_entries = full.n_entries(layer, 0);
        const int64_t n_keys = n_entries - (n_answer - n_queries);
        std::vector<at::Tensor> rows;
        for (int row = 0; row < shape.n_kv_heads; ++row) rows.push_back(full.keys_on_processor(layer, row, n_entries));
        const at::Tensor copied = model.device().is_processor() ? at::Tensor() : at::stack(rows);
        const auto keys_of = [&](size_t row) { return static_cast<const char*>(rows[row].const_data_ptr()); };
        const int64_t stride =
            copied.defined() || rows.size() == 1 ? n_entries * d : (keys_of(1) - keys_of(0)) / element;
        const at::Tensor queries = answer.attention.queries[static_cast<size_t>(layer)]
                                       .narrow(0, 0, n_queries)
                                       .cpu()
                                       .to(at::kFloat)
                                       .view({n_queries, shape.n_heads, d})
                                       .permute({1, 0, 2})
                                       .contiguous();
        std::vector<float> mean(static_cast<size_t>(shape.n_heads * n_keys));
        kernels::window_attention({.n_heads = shape.n_heads,
                                   .n_kv_heads = shape.n_kv_heads,
                                   .head_dim = shape.head_dim,
                                   .window = static_cast<int>(n_queries),
                                   .n_tokens = n_keys,
                                   .scale = model.attention_scale(),
                                   .queries = queries.const_data_ptr<float>(),
                                   .keys = copied.defined() ? copied.const_data_ptr() : keys_of(0),
                                   .keys_dtype = model.dtype(),
                                   .key_head_stride = stride,
                                   .sliding_window = model.config().sliding_window[static_cast<size_t>(layer)],
                                   .mean = mean.data()});
        for (int64_t h = 0; h < shape.n_heads; ++h) {
            const float* row = mean.data() + h * n_keys;
            std::transform(row, row + n_context, std::back_inserter(attention),
                           [&](float value) { return value * static_cast<float>(n_queries); });
        }
    }
    return attention;
}

std::vector<float> mean_over_groups(const std::vector<float>& attention, const policies::ModelShape& shape,
                                    int64_t n_tokens) {
    std::vector<float> means(static_cast<size_t>(shape.n_layers * shape.n_kv_heads * n_tokens));
    for (int64_t layer = 0; layer < shape.n_layers; ++layer)
        kernels::reduce_heads(kernels::HeadReduction::mean, attention.data() + layer * shape.n_heads * n_tokens,
                              n_tokens, shape.n_kv_heads, shape.group(), n_tokens,
                              means.data() + layer * shape.n_kv_heads * n_tokens, n_tokens);
    return means;
}

}  // namespace kvscope::engine
