#pragma once

#include <ATen/core/Tensor.h>

namespace kvscope::engine {

/// Memory of the processor that is reused for copies from a device. Allocating new memory is slower than the copies
/// themselves.
class HostRoom {
 public:
    /// Returns a contiguous copy in the processor's memory, or the tensor itself if it is already there. The memory is
    /// reused after the returned tensor is released.
    at::Tensor copy(const at::Tensor& there);

 private:
    at::Tensor bytes_;
};

}  // namespace kvscope::engine
