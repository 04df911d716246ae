#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace kvscope::engine {

/// Cosines and sines, each (n, d / 2) f32, that turn n tokens.
struct Rotation {
    at::Tensor cosines, sines;
};

/// A model's rotations by position. They are computed in double once, when first asked for; caches that renumber their
/// entries ask for them at every layer and token. Usable from several threads.
class RotationTable {
 public:
    /// @param inverse_frequencies (d / 2) radians per position
    /// @param factor multiplies cosines and sines
    /// @param limit positions from here on are computed each time: nothing asks for them often
    /// @param place the device on which rotations are wanted
    RotationTable(std::vector<double> inverse_frequencies, double factor, int64_t limit, at::Device place = at::kCPU);

    /// The same for another device.
    std::shared_ptr<const RotationTable> on(at::Device place) const {
        return std::make_shared<const RotationTable>(inverse_frequencies_, factor_, limit_, place);
    }

    /// To positions, or by differences of positions, which may be negative. The tensors may be parts of the table: they
    /// are not written to.
    Rotation rotation(std::span<const int64_t> positions) const;

 private:
    Rotation computed(std::span<const int64_t> positions) const;
    Rotation there(Rotation rotation) const;
    Rotation grow(int64_t n) const;

    std::vector<double> inverse_frequencies_;
    double factor_;
    int64_t limit_;
    at::Device place_;
    mutable std::mutex mutex_;
    // Of positions 0, 1, …, here and on the device; replaced when they grow, so that parts handed out stay.
    mutable Rotation known_, known_there_;
};

}  // namespace kvscope::engine
