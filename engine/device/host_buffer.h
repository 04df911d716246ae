#pragma once

#include <ATen/core/Tensor.h>

namespace kvscope::engine {

/// Reusable memory of the processor for copies from a device. Allocating memory takes longer than copying.
class HostBuffer {
 public:
    /// Returns a contiguous copy in the processor's memory, or the tensor itself if it is already there.
    [[nodiscard]] at::Tensor copy(const at::Tensor& there);

 private:
    at::Tensor bytes_;
};

}  // namespace kvscope::engine
