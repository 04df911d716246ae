#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace kvscope::engine {

/// Cosines and sines, (n, d / 2) f32 each, that rotate n tokens (RoPE).
struct Rotation {
    at::Tensor cosines, sines;
};

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
