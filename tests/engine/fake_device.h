#pragma once

#include "engine/device/compute_device.h"

namespace kvscope::engine {

/// Returns a device without hardware. Its addresses are not accessible to the processor; reading them ends the program.
/// libtorch's functions and TorchDevice compute on it. New memory holds NaN.
[[nodiscard]] const ComputeDevice& fake_device();

/// Returns the device for the tests' models, from the environment variable KVSCOPE_TEST_DEVICE: "torch" (TorchDevice
/// on the processor), "fake", "fake-kernels" (the fake device with the processor's kernels), "cuda" (the first card),
/// or by default the processor.
[[nodiscard]] ComputeDevice device_of_tests();

}  // namespace kvscope::engine
