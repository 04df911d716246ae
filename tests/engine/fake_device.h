#pragma once

#include "engine/device/compute_device.h"

namespace kvscope::engine {

/// A device without hardware, for tests. Its memory has addresses of its own that the processor can neither read nor
/// write: doing so ends the program. libtorch's functions and TorchBackend compute on it; new memory holds NaN.
const ComputeDevice& fake_device();

/// On which the tests' models run, as the environment variable KVSCOPE_TEST_DEVICE says: "torch", TorchBackend in the
/// processor's own memory; "fake"; "fake-kernels", the same memory with the processor's kernels, which are faster;
/// "cuda", the first card. The processor without.
ComputeDevice device_of_tests();

}  // namespace kvscope::engine
