#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "engine/device/compute_device.h"
#include "engine/device/host_room.h"
#include "kernels/types.h"
#include "policies/interface/observations.h"

namespace kvscope::engine {

/// One layer's full cache: keys (post-RoPE) and values, each (G, capacity, d), of which a prefix is filled.
struct DenseLayer {
    at::Tensor keys = {}, values = {};
    ComputeDevice device = {};
    at::Tensor host_keys = {}, host_values = {};  ///< in the processor's memory, once they were brought there

    static DenseLayer allocate(const policies::ModelShape& shape, int64_t capacity, at::ScalarType type,
                               const ComputeDevice& device = {});

    int64_t capacity() const { return keys.size(1); }

    /// Copies the key and value columns of `qkv` (n, (H + 2G) d) to entries first … first + n - 1.
    void write(const policies::ModelShape& shape, const at::Tensor& qkv, int64_t first);

    /// The keys alone.
    void write_keys(const policies::ModelShape& shape, const at::Tensor& qkv, int64_t first);

    /// Room for a layer's entries in the processor's memory.
    struct Room {
        HostRoom keys, values;
    };

    /// Copies what is there to the processor's memory, where it is not in that.
    void bring_to_processor(Room& room);
    void bring_to_processor();
    /// What was brought there. @throws std::logic_error where nothing was
    DenseLayer on_processor() const;

    policies::EntriesView keys_view() const { return view(keys, host_keys); }
    policies::EntriesView values_view() const { return view(values, host_values); }

    /// Entries (G, n, d) of a device.
    static policies::EntriesView entries_view(const at::Tensor& entries, const ComputeDevice& device);

 private:
    void copy_heads(const at::Tensor& qkv, int head, int64_t first, at::Tensor& target) const;
    policies::EntriesView view(const at::Tensor& entries, const at::Tensor& host) const;
};

using DenseCache = std::vector<DenseLayer>;  ///< one for each layer

}  // namespace kvscope::engine
