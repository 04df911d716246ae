#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "engine/device/compute_device.h"
#include "engine/device/host_buffer.h"
#include "policies/api/observations.h"

namespace kvscope::engine {

/// Full cache of one layer: keys (after RoPE) and values, (G, capacity, d) each. Only the first entries are in use.
struct DenseLayer {
    at::Tensor keys = {}, values = {};
    ComputeDevice device = {};
    at::Tensor host_keys = {}, host_values = {};  ///< copies in the processor's memory, if any

    [[nodiscard]] static DenseLayer allocate(const policies::ModelShape& shape, int64_t capacity, at::ScalarType type,
                                             const ComputeDevice& device = {});

    [[nodiscard]] int64_t capacity() const { return keys.size(1); }

    void write(const policies::ModelShape& shape, const at::Tensor& qkv, int64_t first);

    void write_keys(const policies::ModelShape& shape, const at::Tensor& qkv, int64_t first);

    struct Room {
        HostBuffer keys, values;
    };

    /// Copies the entries to the processor's memory if they are on a device.
    void bring_to_processor(Room& room);
    void bring_to_processor();
    /// Returns the copy in the processor's memory. @throws std::logic_error if bring_to_processor() was not called
    [[nodiscard]] DenseLayer on_processor() const;

    [[nodiscard]] policies::EntriesView keys_view() const { return view(keys, host_keys); }
    [[nodiscard]] policies::EntriesView values_view() const { return view(values, host_values); }

    [[nodiscard]] static policies::EntriesView entries_view(const at::Tensor& entries, const ComputeDevice& device);

 private:
    void copy_heads(const at::Tensor& qkv, int head, int64_t first, at::Tensor& target) const;
    [[nodiscard]] policies::EntriesView view(const at::Tensor& entries, const at::Tensor& host) const;
};

using DenseCache = std::vector<DenseLayer>;

}  // namespace kvscope::engine
