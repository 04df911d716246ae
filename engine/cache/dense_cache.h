#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "kernels/types.h"
#include "policies/interface/observations.h"

namespace kvscope::engine {

/// One layer's full cache: keys (post-RoPE) and values, each (G, capacity, d), of which a prefix is filled.
struct DenseLayer {
    at::Tensor keys, values;

    static DenseLayer allocate(const policies::ModelShape& shape, int64_t capacity, at::ScalarType type);

    int64_t capacity() const { return keys.size(1); }

    /// Copies the key and value columns of `qkv` (n, (H + 2G) d) to entries first … first + n - 1.
    void write(const policies::ModelShape& shape, const at::Tensor& qkv, int64_t first);

    /// The keys alone, to `target` (G, capacity, d).
    static void write_keys(const policies::ModelShape& shape, const at::Tensor& qkv, int64_t first, at::Tensor& target);

    policies::EntriesView keys_view(int64_t first = 0) const { return view(keys, first); }
    policies::EntriesView values_view(int64_t first = 0) const { return view(values, first); }

    /// Entries (G, capacity, d) from `first` on.
    static policies::EntriesView view(const at::Tensor& entries, int64_t first = 0);
};

using DenseCache = std::vector<DenseLayer>;  ///< one for each layer

}  // namespace kvscope::engine
