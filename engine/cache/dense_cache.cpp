#include "engine/cache/dense_cache.h"

#include <ATen/Functions.h>

#include <cstring>

namespace kvscope::engine {
namespace {

/// Of `qkv` (n, heads d), heads `head` and following, to entries first … first + n - 1 of `target` (n_heads, capacity,
/// d).
void copy_heads(const at::Tensor& qkv, int head, int n_heads, int64_t first, at::Tensor& target) {
    const size_t entry = static_cast<size_t>(target.size(2)) * qkv.element_size();
    const size_t row = static_cast<size_t>(qkv.size(1)) * qkv.element_size();
    const auto* source = static_cast<const char*>(qkv.const_data_ptr()) + static_cast<size_t>(head) * entry;
    auto* to = static_cast<char*>(target.data_ptr());
    for (int g = 0; g < n_heads; ++g)
        for (int64_t i = 0; i < qkv.size(0); ++i)
            std::memcpy(to + static_cast<size_t>(g * target.size(1) + first + i) * entry,
                        source + static_cast<size_t>(i) * row + static_cast<size_t>(g) * entry, entry);
}

}  // namespace

DenseLayer DenseLayer::allocate(const policies::ModelShape& shape, int64_t capacity, at::ScalarType type) {
    const auto options = at::TensorOptions().dtype(type);
    return {at::empty({shape.n_kv_heads, capacity, shape.head_dim}, options),
            at::empty({shape.n_kv_heads, capacity, shape.head_dim}, options)};
}

void DenseLayer::write(const policies::ModelShape& shape, const at::Tensor& qkv, int64_t first) {
    copy_heads(qkv, shape.n_heads, shape.n_kv_heads, first, keys);
    copy_heads(qkv, shape.n_heads + shape.n_kv_heads, shape.n_kv_heads, first, values);
}

void DenseLayer::write_keys(const policies::ModelShape& shape, const at::Tensor& qkv, int64_t first,
                            at::Tensor& target) {
    copy_heads(qkv, shape.n_heads, shape.n_kv_heads, first, target);
}

policies::EntriesView DenseLayer::view(const at::Tensor& entries, int64_t first) {
    const auto offset = static_cast<size_t>(first * entries.size(2)) * entries.element_size();
    return {static_cast<const char*>(entries.const_data_ptr()) + offset,
            entries.scalar_type() == at::kBFloat16 ? kernels::DType::bf16 : kernels::DType::f32, kernels::Device::cpu,
            entries.size(1) * entries.size(2)};
}

}  // namespace kvscope::engine
