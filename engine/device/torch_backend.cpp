#include "engine/device/torch_backend.h"

#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "engine/device/tensor_functions.h"
#include "kernels/cuda_library.h"

namespace kvscope::engine {
namespace {

using kernels::DType;

at::ScalarType scalar_of(DType type) {
    if (type == DType::bf16) return at::kBFloat16;
    return type == DType::f32 ? at::kFloat : at::kHalf;
}

at::ScalarType scalar_of(kernels::WeightFormat format) {
    for (const DType type : {DType::f32, DType::bf16, DType::f16})
        if (kernels::weight_format_of(type) == format) return scalar_of(type);
    throw std::logic_error("libtorch has no type for this weight format");
}

at::Tensor host(const void* data, int64_t n, at::ScalarType type) {
    // NOLINTNEXTLINE(*-const-cast): from_blob() takes no pointers to const
    return at::from_blob(const_cast<void*>(data), {n}, at::TensorOptions().dtype(type));
}

at::Tensor product(const at::Tensor& x, const at::Tensor& weight) { return (weight * x).sum(-1); }

struct Found {
    at::Tensor out;      ///< (R, d)
    at::Tensor weights;  ///< (R, m)
};

Found softmax_sum(const at::Tensor& logits, const at::Tensor& values, const at::Tensor& masses) {
    const at::Tensor terms = (logits - logits.amax(-1, true)).exp();
    const at::Tensor total = (masses.defined() ? terms * masses : terms).sum(-1, true);
    const at::Tensor shares = terms / total;
    const int64_t g = values.size(0), m = values.size(1), d = values.size(2);
    const at::Tensor of_heads = shares.view({g, logits.size(0) / g, m, 1});
    return {(of_heads * values.view({g, 1, m, d})).sum(2).view({logits.size(0), d}),
            masses.defined() ? shares * masses : shares};
}

/// Returns the attention logits (R, m) for queries (R, d) and keys (G, m, d), where G divides R.
at::Tensor logits_of(const at::Tensor& queries, const at::Tensor& keys, float scale) {
    const int64_t g = keys.size(0), m = keys.size(1), d = keys.size(2), r = queries.size(0);
    return (keys.view({g, 1, m, d}) * queries.view({g, r / g, 1, d})).sum(-1).view({r, m}) * scale;
}

}  // namespace

void* TorchBackend::allocate(size_t bytes) const {
    try {
        return c10::GetAllocator(place_.type())->raw_allocate(bytes);
    } catch (const c10::Error& error) {
        throw kernels::cuda::Failed(error.what_without_backtrace());
    }
}
void TorchBackend::release(void* data) const noexcept { c10::GetAllocator(place_.type())->raw_deallocate(data); }

void TorchBackend::upload(void* to, const void* from, size_t bytes) const {
    const auto n = static_cast<int64_t>(bytes);
    array(to, {n}, {1}, at::kByte).copy_(host(from, n, at::kByte));
}

void TorchBackend::download(void* to, const void* from, size_t bytes) const {
    const auto n = static_cast<int64_t>(bytes);
    host(to, n, at::kByte).copy_(array(from, {n}, {1}, at::kByte));
}

bool TorchBackend::reads(kernels::WeightFormat format) const { return kernels::block_size_of_format(format).n == 1; }

at::Tensor TorchBackend::array(const void* data, at::IntArrayRef sizes, at::IntArrayRef strides,
                               at::ScalarType type) const {
    return at::from_blob(
        // NOLINTNEXTLINE(*-const-cast): from_blob() takes no pointers to const
        const_cast<void*>(data), sizes, strides, [](void*) {}, at::TensorOptions().dtype(type).device(place_), place_);
}

at::Tensor TorchBackend::rows(const void* data, int64_t n, int64_t width, int64_t stride, DType type) const {
    return array(data, {n, width}, {stride, 1}, scalar_of(type));
}

at::Tensor TorchBackend::on_device(const at::Tensor& values) const {
    return values.to(array(nullptr, {0}, {1}, at::kByte).device());
}

void TorchBackend::expand_weights(const kernels::ExpandWeights& problem) const {
    array(problem.out, {problem.n_rows, problem.in}, {problem.in, 1}, scalar_of(problem.dtype))
        .copy_(array(problem.rows, {problem.n_rows, problem.in}, {problem.in, 1}, scalar_of(problem.format)));
}

void TorchBackend::embed(const kernels::Embed& problem) const {
    const auto n = static_cast<int64_t>(problem.ids.size());
    if (n == 0) return;
    const int32_t last = *std::max_element(problem.ids.begin(), problem.ids.end());
    const at::Tensor table =
        array(problem.weight, {last + 1, problem.columns}, {problem.columns, 1}, scalar_of(problem.format));
    const at::Tensor ids = on_device(host(problem.ids.data(), n, at::kInt).to(at::kLong));
    array(problem.out, {n, problem.columns}, {problem.columns, 1}, at::kFloat)
        .copy_(table.index_select(0, ids).to(scalar_of(problem.dtype)));
}

void TorchBackend::linear(const kernels::Linear& problem) const {
    const auto format = problem.format.value_or(kernels::weight_format_of(problem.dtype));
    const int64_t in = problem.in, out = problem.out;
    const at::Tensor weight =
        array(problem.weight, {out, in}, {in, 1}, scalar_of(format)).to(scalar_of(problem.dtype)).to(at::kFloat);
    const at::Tensor x =
        rows(problem.x, problem.n_rows, in, problem.x_stride ? problem.x_stride : in, problem.dtype).to(at::kFloat);
    at::Tensor y = rows(problem.y, problem.n_rows, out, problem.y_stride ? problem.y_stride : out, problem.y_dtype);
    for (int64_t row = 0; row < problem.n_rows; ++row) {
        at::Tensor sums = product(x.select(0, row), weight);
        if (problem.bias) sums = sums + array(problem.bias, {out}, {1}, at::kFloat);
        y.select(0, row).copy_(sums);
    }
}

void TorchBackend::rms_norm(const kernels::RmsNorm& problem) const {
    const int64_t width = problem.heads * problem.dim;
    const auto split = [&](const at::Tensor& all) { return all.unflatten(1, {problem.heads, problem.dim}); };
    const at::Tensor x =
        split(rows(problem.x, problem.n_rows, width, problem.x_stride ? problem.x_stride : width, problem.x_dtype))
            .to(at::kFloat);
    const at::Tensor scale = ((x * x).sum(-1, true) / static_cast<double>(problem.dim) + problem.eps).rsqrt();
    split(rows(problem.out, problem.n_rows, width, problem.out_stride ? problem.out_stride : width, problem.out_dtype))
        .copy_(x * scale * array(problem.weight, {problem.dim}, {1}, at::kFloat));
}

void TorchBackend::add_rms_norm(const kernels::AddRmsNorm& problem) const {
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

void TorchBackend::swiglu(const kernels::SwiGlu& problem) const {
    const auto in = [&](const void* data) {
        return rows(data, problem.n_rows, problem.dim, problem.in_stride ? problem.in_stride : problem.dim,
                    problem.dtype)
            .to(at::kFloat);
    };
    const at::Tensor gate = in(problem.gate);
    rows(problem.out, problem.n_rows, problem.dim, problem.out_stride ? problem.out_stride : problem.dim, problem.dtype)
        .copy_(gate / ((-gate).exp() + 1) * in(problem.up));
}

void TorchBackend::rope(const kernels::Rope& problem) const {
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

/// Computes one query at a time, so that results do not depend on how queries are divided into calls.
void TorchBackend::attend(const kernels::PrefillAttention& problem) const {
    const int64_t d = problem.head_dim, h = problem.n_heads, n_keys = problem.q_begin + problem.n_queries;
    const at::ScalarType type = scalar_of(problem.dtype);
    const auto entries = [&](const void* data) {
        return array(data, {problem.n_kv_heads, n_keys, d}, {problem.kv_head_stride, d, 1}, type).to(at::kFloat);
    };
    const at::Tensor keys = entries(problem.k), values = entries(problem.v);
    const at::Tensor masses =
        problem.cardinality ? array(problem.cardinality, {n_keys}, {1}, at::kFloat) : at::Tensor();
    for (int64_t i = 0; i < problem.n_queries; ++i) {
        const int64_t end = problem.q_begin + i + 1;
        const int64_t first = problem.first_keys            ? problem.first_keys[i]
                              : problem.sliding_window != 0 ? std::max<int64_t>(end - problem.sliding_window, 0)
                                                            : 0;
        const size_t at = static_cast<size_t>(i * problem.q_token_stride) * kernels::size_of(problem.dtype);
        const at::Tensor queries = array(static_cast<const char*>(problem.q) + at, {h, d}, {d, 1}, type).to(at::kFloat);
        const int64_t n = end - first;
        const Found found = softmax_sum(logits_of(queries, keys.narrow(1, first, n).contiguous(), problem.scale),
                                        values.narrow(1, first, n).contiguous(),
                                        masses.defined() ? masses.narrow(0, first, n) : masses);
        const size_t to = static_cast<size_t>(i * problem.out_token_stride) * kernels::size_of(problem.dtype);
        if (problem.out) array(static_cast<char*>(problem.out) + to, {h, d}, {d, 1}, type).copy_(found.out);
        if (problem.column_sums)
            array(problem.column_sums + first, {h, n}, {problem.column_stride, 1}, at::kDouble).add_(found.weights);
    }
}

void TorchBackend::attention_prefill(std::span<const kernels::PrefillAttention> problems) const {
    for (const auto& problem : problems) attend(problem);
}

/// Attends to a row and its continuations with one softmax over all entries.
void TorchBackend::attend(std::span<const kernels::DecodeRow> chain, int head_dim, DType dtype, float scale) const {
    const at::ScalarType type = scalar_of(dtype);
    std::vector<at::Tensor> logits, values, masses;
    for (const kernels::DecodeRow& row : chain) {
        if (row.entries) throw std::logic_error("entries that must be computed when read require the processor");
        const int64_t key_dim = row.key_dim ? row.key_dim : head_dim, n = row.n_entries;
        const at::Tensor queries = array(row.q, {row.n_queries, key_dim}, {row.q_stride, 1}, type).to(at::kFloat);
        const at::Tensor keys = array(row.k, {1, n, key_dim}, {0, row.k_stride, 1}, type).to(at::kFloat).contiguous();
        logits.push_back(logits_of(queries.contiguous(), keys, scale));
        values.push_back(array(row.v, {1, n, head_dim}, {0, row.v_stride, 1}, type).to(at::kFloat).contiguous());
        const at::Tensor own = row.cardinality ? array(row.cardinality, {n}, {1}, at::kFloat) : at::Tensor();
        masses.push_back(own.defined() ? own : at::ones({n}, keys.options()));
    }
    const bool merged =
        std::any_of(chain.begin(), chain.end(), [](const kernels::DecodeRow& row) { return row.cardinality; });
    const Found found =
        softmax_sum(at::cat(logits, 1), at::cat(values, 1).contiguous(), merged ? at::cat(masses) : at::Tensor());
    const kernels::DecodeRow& first = chain.front();
    array(first.out, {first.n_queries, head_dim}, {first.out_stride, 1}, type).copy_(found.out);
    int64_t begin = 0;
    for (const kernels::DecodeRow& row : chain) {
        const int64_t n = row.n_entries;
        if (row.attention)
            array(row.attention, {row.n_queries, n}, {row.attention_stride ? row.attention_stride : n, 1}, at::kFloat)
                .copy_(found.weights.narrow(1, begin, n));
        begin += n;
    }
}

void TorchBackend::attention_decode(std::span<const kernels::DecodeRow> rows, int head_dim, DType dtype,
                                    float scale) const {
    for (size_t first = 0; first < rows.size();) {
        size_t end = first + 1;
        while (end < rows.size() && rows[end].continues) ++end;
        attend(rows.subspan(first, end - first), head_dim, dtype, scale);
        first = end;
    }
}

/// Returns softmax weights (H, w, n), with 0 for keys that a query does not see.
at::Tensor TorchBackend::window_weights(const kernels::WindowAttention& problem) const {
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

void TorchBackend::window_attention(const kernels::WindowAttention& problem) const {
    const int64_t n = problem.prefix_only ? problem.n_tokens - problem.window : problem.n_tokens;
    if (n == 0) return;
    array(problem.mean, {problem.n_heads, n}, {n, 1}, at::kFloat).copy_(window_weights(problem).mean(1));
}

void TorchBackend::window_attention_head_max(const kernels::WindowAttention& problem) const {
    const int64_t n = problem.n_tokens, group = problem.n_heads / problem.n_kv_heads;
    const at::Tensor of_kv_heads = window_weights(problem).view({problem.n_kv_heads, group, problem.window, n}).mean(1);
    array(problem.mean, {n}, {1}, at::kFloat).copy_(of_kv_heads.amax(0).mean(0));
}

void TorchBackend::copy_rows(std::span<const kernels::RowCopy> copies) const {
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

void TorchBackend::row_errors(std::span<const kernels::RowErrors> problems) const {
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
