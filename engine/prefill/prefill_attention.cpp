#include "engine/prefill/prefill_attention.h"

#include "engine/device/tensor_functions.h"
#include "kernels/backend.h"

namespace kvscope::engine {

at::Tensor compute_causal_attention(const Transformer& model, int layer, const at::Tensor& qkv, const DenseLayer& dense,
                                    const PromptAttention& tokens) {
    const auto shape = model.shape();
    const int64_t width = int64_t{shape.n_heads} * shape.head_dim;
    at::Tensor out;
    if (!tokens.sums_alone) out = at::empty({tokens.n, width}, qkv.options());
    const kernels::PrefillAttention problem{
        .dtype = model.dtype(),
        .n_heads = shape.n_heads,
        .n_kv_heads = shape.n_kv_heads,
        .head_dim = shape.head_dim,
        .scale = model.attention_scale(),
        .q_begin = tokens.first,
        .n_queries = tokens.n,
        .sliding_window = model.config().sliding_window[static_cast<size_t>(layer)],
        .q = static_cast<const char*>(qkv.const_data_ptr()) +
             static_cast<size_t>(tokens.row * qkv.size(1)) * kernels::size_of(model.dtype()),
        .q_token_stride = qkv.size(1),
        .k = dense.keys.const_data_ptr(),
        .v = dense.values.const_data_ptr(),
        .kv_head_stride = dense.capacity() * shape.head_dim,
        .out = tokens.sums_alone ? nullptr : out.data_ptr(),
        .out_token_stride = width,
        .column_sums = tokens.sums,
        .column_stride = tokens.sums_stride};
    model.backend().attention_prefill({&problem, 1});
    return out;
}

}  // namespace kvscope::engine
