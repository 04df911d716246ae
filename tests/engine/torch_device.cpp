#include "tests/engine/torch_device.h"

#include <ATen/ops/arange.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/device/tensor_functions.h"

namespace kvscope::engine {
namespace {

using kernels::DType;

at::ScalarType scalar_of(DType type) { return type == DType::bf16 ? at::kBFloat16 : at::kFloat; }

at::Tensor host(const void* data, int64_t n, at::ScalarType type) {
    // NOLINTNEXTLINE(*-const-cast): from_blob() takes no pointers to const
    return at::from_blob(const_cast<void*>(data), {n}, at::TensorOptions().dtype(type));
}

}  // namespace

void TorchDevice::upload(void* to, const void* from, size_t bytes) const {
    const auto n = static_cast<int64_t>(bytes);
    array(to, {n}, {1}, at::kByte).copy_(host(from, n, at::kByte));
}

void TorchDevice::download(void* to, const void* from, size_t bytes) const {
    const auto n = static_cast<int64_t>(bytes);
    host(to, n, at::kByte).copy_(array(from, {n}, {1}, at::kByte));
}

bool TorchDevice::reads(kernels::WeightFormat format) const { return kernels::block_size_of_format(format).n == 1; }

void TorchDevice::rms_norm(const kernels::RmsNorm& problem) const {
    const int64_t width = problem.heads * problem.dim;
    const auto split = [&](const at::Tensor& all) { return all.unflatten(1, {problem.heads, problem.dim}); };
    const at::Tensor x =
        split(rows(problem.x, problem.n_rows, width, problem.x_stride ? problem.x_stride : width, problem.x_dtype))
            .to(at::kFloat);
    const at::Tensor scale = ((x * x).sum(-1, true) / static_cast<double>(problem.dim) + problem.eps).rsqrt();
    split(rows(problem.out, problem.n_rows, width, problem.out_stride ? problem.out_stride : width, problem.out_dtype))
        .copy_(x * scale * array(problem.weight, {problem.dim}, {1}, at::kFloat));
}

void TorchDevice::add_rms_norm(const kernels::AddRmsNorm& problem) const {
    at::Tensor residual = rows(problem.residual, problem.n_rows, problem.dim, problem.dim, DType::f32);
    if (problem.delta)
        residual.add_(rows(problem.delta, problem.n_rows, problem.dim, problem.dim, problem.delta_dtype));
    rms_norm({.n_rows = problem.n_rows,
              .dim = problem.dim,
              .eps = problem.eps,
              .x = problem.residual,
              .weight = problem.weight,
              .out = problem.out,
              .out_dtype = problem.out_dtype});
}

void TorchDevice::swiglu(const kernels::SwiGlu& problem) const {
    const auto in = [&](const void* data) {
        return rows(data, problem.n_rows, problem.dim, problem.in_stride ? problem.in_stride : problem.dim,
                    problem.dtype)
            .to(at::kFloat);
    };
    const at::Tensor gate = in(problem.gate);
    rows(problem.out, problem.n_rows, problem.dim, problem.out_stride ? problem.out_stride : problem.dim, problem.dtype)
        .copy_(gate / ((-gate).exp() + 1) * in(problem.up));
}

void TorchDevice::rope(const kernels::Rope& problem) const {
    const int64_t half = problem.head_dim / 2, head_stride = problem.head_stride ? problem.head_stride : 2 * half;
    const at::Tensor x = array(problem.x, {problem.n_tokens, problem.n_heads, 2 * half},
                               {problem.token_stride, head_stride, 1}, scalar_of(problem.dtype));
    const auto table = [&](const float* data) {
        return array(data, {problem.n_tokens, 1, half}, {half, half, 1}, at::kFloat);
    };
    const at::Tensor cosines = table(problem.cosines), sines = table(problem.sines);
    const at::Tensor a = x.narrow(2, 0, half).to(at::kFloat), b = x.narrow(2, half, half).to(at::kFloat);
    x.copy_(at::cat({a * cosines - b * sines, b * cosines + a * sines}, 2));
}

/// Returns softmax weights (H, w, n), with 0 for keys that a query does not see.
at::Tensor TorchDevice::window_weights(const kernels::WindowAttention& problem) const {
    const int64_t d = problem.head_dim, w = problem.window, group = problem.n_heads / problem.n_kv_heads;
    const int64_t n = problem.prefix_only ? problem.n_tokens - w : problem.n_tokens;
    const float scale = problem.scale != 0 ? problem.scale : static_cast<float>(1 / std::sqrt(double(d)));
    const at::Tensor keys =
        array(problem.keys, {problem.n_kv_heads, n, d}, {problem.key_head_stride, d, 1}, scalar_of(problem.keys_dtype))
            .to(at::kFloat)
            .repeat_interleave(group, 0);
    const int64_t stride = problem.query_head_stride ? problem.query_head_stride : w * d;
    const at::Tensor queries = array(problem.queries, {problem.n_heads, w, d}, {stride, d, 1}, at::kFloat);
    const at::Tensor positions = at::arange(problem.n_tokens - w, problem.n_tokens, keys.options().dtype(at::kLong));
    const at::Tensor behind = positions.unsqueeze(1) - at::arange(n, keys.options().dtype(at::kLong)).unsqueeze(0);
    at::Tensor hidden = behind < 0;
    if (problem.sliding_window != 0) hidden = hidden.logical_or(behind >= problem.sliding_window);
    const at::Tensor logits = queries.matmul(keys.transpose(1, 2)) * scale;
    return logits.masked_fill(hidden, -INFINITY).softmax(-1).masked_fill(hidden, 0.0);
}

void TorchDevice::window_attention(const kernels::WindowAttention& problem) const {
    const int64_t n = problem.prefix_only ? problem.n_tokens - problem.window : problem.n_tokens;
    if (n == 0) return;
    array(problem.mean, {problem.n_heads, n}, {n, 1}, at::kFloat).copy_(window_weights(problem).mean(1));
}

void TorchDevice::window_attention_head_max(const kernels::WindowAttention& problem) const {
    const int64_t n = problem.n_tokens, group = problem.n_heads / problem.n_kv_heads;
    const at::Tensor of_kv_heads = window_weights(problem).view({problem.n_kv_heads, group, problem.window, n}).mean(1);
    array(problem.mean, {n}, {1}, at::kFloat).copy_(of_kv_heads.amax(0).mean(0));
}

void TorchDevice::copy_rows(std::span<const kernels::RowCopy> copies) const {
    for (const kernels::RowCopy& copy : copies) {
        if (copy.n_rows == 0) continue;
        const auto bytes = static_cast<int64_t>(copy.row_bytes);
        const int64_t from_stride = static_cast<int64_t>(copy.from_stride),
                      to_stride = static_cast<int64_t>(copy.to_stride);
        const at::Tensor to = array(copy.to, {copy.n_rows, bytes}, {to_stride, 1}, at::kByte);
        if (!copy.rows) {
            to.copy_(array(copy.from, {copy.n_rows, bytes}, {from_stride, 1}, at::kByte).clone());
            continue;
        }
        const uint32_t last = *std::max_element(copy.rows, copy.rows + copy.n_rows);
        const at::Tensor from = array(copy.from, {int64_t{last} + 1, bytes}, {from_stride, 1}, at::kByte);
        to.copy_(from.index_select(0, on_device(host(copy.rows, copy.n_rows, at::kInt).to(at::kLong))));
    }
}

void TorchDevice::row_errors(std::span<const kernels::RowErrors> problems) const {
    std::vector<at::Tensor> found_there;
    for (const kernels::RowErrors& problem : problems) {
        const int64_t width = int64_t{problem.n_heads} * problem.head_dim;
        const auto vectors = [&](const void* data, int64_t stride) {
            return rows(data, problem.n_rows, width, stride, problem.dtype)
                .to(at::kDouble)
                .unflatten(1, {int64_t{problem.n_heads}, int64_t{problem.head_dim}});
        };
        const at::Tensor found = vectors(problem.found, problem.found_stride),
                         expected = vectors(problem.expected, problem.expected_stride);
        const at::Tensor norms = (expected * expected).sum(-1), differences = (found - expected).square().sum(-1);
        const at::Tensor errors = (differences / norms).sqrt().masked_fill(norms == 0, 0.0);
        found_there.push_back(errors.flatten());
    }
    if (found_there.empty()) return;
    // All errors are copied at once, because each copy waits for the device.
    const at::Tensor here = at::cat(found_there).cpu();
    const double* next = here.const_data_ptr<double>();
    for (const kernels::RowErrors& problem : problems) {
        const int64_t n = problem.n_rows * problem.n_heads;
        std::copy_n(next, n, problem.errors);
        next += n;
    }
}

}  // namespace kvscope::engine
