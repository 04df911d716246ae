#pragma once

#include <ATen/core/Tensor.h>

namespace kvscope::engine {

/// Room in the processor's memory for what is brought there from a device time and again. Memory that is new each time
/// is slower than the copies themselves.
class HostRoom {
 public:
    /// A device's numbers in the processor's memory, in their order; themselves where they lie there. The room is used
    /// again once nobody holds the tensor any more.
    at::Tensor copy(const at::Tensor& there);

 private:
    at::Tensor bytes_;
};

}  // namespace kvscope::engine
