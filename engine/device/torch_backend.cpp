#include "engine/device/torch_backend.h"

#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
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

}  // namespace kvscope::engine
