#include "engine/cache/dense_cache.h"

#include <stdexcept>

#include "engine/device/tensor_functions.h"

namespace kvscope::engine {

void DenseLayer::copy_heads(const at::Tensor& qkv, int head, int64_t first, at::Tensor& target) const {
    const size_t entry = static_cast<size_t>(target.size(2)) * qkv.element_size();
    const size_t row = static_cast<size_t>(qkv.size(1)) * qkv.element_size();
    const auto* source = static_cast<const char*>(qkv.const_data_ptr()) + static_cast<size_t>(head) * entry;
    auto* to = static_cast<char*>(target.data_ptr());
    std::vector<kernels::RowCopy> copies;
    for (int64_t g = 0; g < target.size(0); ++g)
        copies.push_back({.from = source + static_cast<size_t>(g) * entry,
                          .from_stride = row,
                          .to = to + static_cast<size_t>(g * target.size(1) + first) * entry,
                          .to_stride = entry,
                          .n_rows = qkv.size(0),
                          .row_bytes = entry});
    device.backend->copy_rows(copies);
}

DenseLayer DenseLayer::allocate(const policies::ModelShape& shape, int64_t capacity, at::ScalarType type,
                                const ComputeDevice& device) {
    const auto options = at::TensorOptions().dtype(type).device(device.place);
    return {.keys = at::empty({shape.n_kv_heads, capacity, shape.head_dim}, options),
            .values = at::empty({shape.n_kv_heads, capacity, shape.head_dim}, options),
            .device = device};
}

void DenseLayer::write(const policies::ModelShape& shape, const at::Tensor& qkv, int64_t first) {
    copy_heads(qkv, shape.n_heads, first, keys);
    copy_heads(qkv, shape.n_heads + shape.n_kv_heads, first, values);
}

void DenseLayer::write_keys(const policies::ModelShape& shape, const at::Tensor& qkv, int64_t first) {
    copy_heads(qkv, shape.n_heads, first, keys);
}

void DenseLayer::bring_to_processor(Room& room) {
    if (device.is_processor() || host_keys.defined()) return;
    host_keys = room.keys.copy(keys);
    if (values.defined()) host_values = room.values.copy(values);
}

void DenseLayer::bring_to_processor() {
    if (device.is_processor() || host_keys.defined()) return;
    host_keys = keys.cpu();
    if (values.defined()) host_values = values.cpu();
}

DenseLayer DenseLayer::on_processor() const {
    if (device.is_processor()) return *this;
    if (!host_keys.defined())
        throw std::logic_error("entries were read that are not in the processor's memory: set Needs::entries");
    return {.keys = host_keys, .values = host_values};
}

policies::EntriesView DenseLayer::entries_view(const at::Tensor& entries, const ComputeDevice& device) {
    policies::EntriesView view{
        .dtype = entries.scalar_type() == at::kBFloat16 ? kernels::DType::bf16 : kernels::DType::f32,
        .head_stride = entries.size(1) * entries.size(2)};
    if (device.is_processor()) {
        view.data = entries.const_data_ptr();
    } else {
        view.device = device.backend;
        view.device_data = entries.const_data_ptr();
    }
    return view;
}

policies::EntriesView DenseLayer::view(const at::Tensor& entries, const at::Tensor& host) const {
    policies::EntriesView seen = entries_view(entries, device);
    if (host.defined()) seen.data = host.const_data_ptr();
    return seen;
}

}  // namespace kvscope::engine
