#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "kernels/rope.h"
#include "kernels/types.h"

namespace kvscope::engine {

/// Cosines and sines, (n, d / 2) f32 each, that rotate n tokens (RoPE).
struct Rotation {
    at::Tensor cosines, sines;
};

/// Returns the rotation of vectors `x` with a row of `rotation` for each token. Strides as in kernels::Rope.
[[nodiscard]] inline kernels::Rope rope_of(const Rotation& rotation, kernels::DType dtype, int64_t n_heads, void* x,
                                           int64_t token_stride, int64_t head_stride = 0) {
    return {.dtype = dtype,
            .n_tokens = rotation.cosines.size(0),
            .n_heads = static_cast<int>(n_heads),
            .head_dim = static_cast<int>(2 * rotation.cosines.size(1)),
            .x = x,
            .token_stride = token_stride,
            .head_stride = head_stride,
            .cosines = rotation.cosines.const_data_ptr<float>(),
            .sines = rotation.sines.const_data_ptr<float>()};
}

/// Table of rotations by position, each computed once in double precision. Thread-safe.
class RotationTable {
 public:
    /// @param inverse_frequencies (d / 2) radians per position
    /// @param factor multiplies cosines and sines
    /// @param limit first position that is not stored, because larger positions are rare
    RotationTable(std::vector<double> inverse_frequencies, double factor, int64_t limit, at::Device place = at::kCPU);

    [[nodiscard]] std::shared_ptr<const RotationTable> on(at::Device place) const {
        return std::make_shared<const RotationTable>(inverse_frequencies_, factor_, limit_, place);
    }

    /// Returns rotations by positions, which may be negative. Do not write to the tensors: the table may share them.
    [[nodiscard]] Rotation rotation(std::span<const int64_t> positions) const;

 private:
    [[nodiscard]] Rotation computed(std::span<const int64_t> positions) const;
    [[nodiscard]] Rotation there(const Rotation& rotation) const;
    [[nodiscard]] Rotation grow(int64_t n) const;

    std::vector<double> inverse_frequencies_;
    double factor_;
    int64_t limit_;
    at::Device place_;
    mutable std::mutex mutex_;
    // A longer table replaces the old table. Parts of the old table remain valid for callers.
    mutable Rotation known_, known_there_;
};

}  // namespace kvscope::engine
