#include "engine/cache/dense_cache.h"

#include <ATen/Functions.h>

#include <cstring>

namespace kvscope::engine {

DenseLayer DenseLayer::allocate(const policies::ModelShape& shape, int64_t capacity, at::ScalarType type) {
    const auto options = at::TensorOptions().dtype(type);
    return {at::empty({shape.n_kv_heads, capacity, shape.head_dim}, options),
            at::empty({shape.n_kv_heads, capacity, shape.head_dim}, options)};
}

void DenseLayer::write(const policies::ModelShape& shape, const at::Tensor& qkv, int64_t first) {
    const int64_t n = qkv.size(0);
    const int64_t d = shape.head_dim;
    const size_t element = qkv.element_size();
    const size_t entry = static_cast<size_t>(d) * element;
    const auto* source = static_cast<const char*>(qkv.const_data_ptr());
    auto* key_target = static_cast<char*>(keys.data_ptr());
    auto* value_target = static_cast<char*>(values.data_ptr());
    const auto token_bytes = static_cast<size_t>(qkv.size(1)) * element;
    const size_t key_column = static_cast<size_t>(shape.n_heads) * entry;
    const size_t value_column = key_column + static_cast<size_t>(shape.n_kv_heads) * entry;
    for (int g = 0; g < shape.n_kv_heads; ++g) {
        for (int64_t i = 0; i < n; ++i) {
            const size_t to = static_cast<size_t>(g * capacity() + first + i) * entry;
            const char* from = source + static_cast<size_t>(i) * token_bytes + static_cast<size_t>(g) * entry;
            std::memcpy(key_target + to, from + key_column, entry);
            std::memcpy(value_target + to, from + value_column, entry);
        }
    }
}

policies::EntriesView DenseLayer::view(const at::Tensor& entries, int64_t first) {
    const auto offset = static_cast<size_t>(first * entries.size(2)) * entries.element_size();
    return {static_cast<const char*>(entries.const_data_ptr()) + offset,
            entries.scalar_type() == at::kBFloat16 ? kernels::DType::bf16 : kernels::DType::f32, kernels::Device::cpu,
            entries.size(1) * entries.size(2)};
}

}  // namespace kvscope::engine
