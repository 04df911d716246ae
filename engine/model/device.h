#pragma once

#include <string_view>

#include "kernels/types.h"

namespace kvscope::engine {

/// "cpu" or "cuda". `cuda` is opened at run time.
/// @throws UsageError for another name, or naming what of the CUDA side is missing on this machine.
kernels::Device device_from_name(std::string_view name);

/// That models can run there on this machine.
/// @throws RunError naming what is missing.
void require_runnable(kernels::Device device);

/// "f32", "bf16" or "auto": bf16 where the processor multiplies it natively, else f32.
/// @throws UsageError for another name.
kernels::DType dtype_from_name(std::string_view name);

}  // namespace kvscope::engine
