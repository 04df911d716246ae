#pragma once

#include <cstddef>

#include "kernels/window_attention.h"

/// What libkvscope_cuda.so exports. Functions return true on success and otherwise write the reason, a terminated
/// string, into `error`. Raise kVersion whenever a signature or a struct that crosses this border changes.
namespace kvscope::kernels::cuda::abi {

inline constexpr int kVersion = 1;

using Version = int();
inline constexpr const char* kVersionSymbol = "kvscope_cuda_version";

/// Whether there is a driver and a GPU that the library was compiled for.
using Probe = bool(char* error, size_t error_size);
inline constexpr const char* kProbeSymbol = "kvscope_cuda_probe";

using Allocate = bool(void** device_memory, size_t bytes, char* error, size_t error_size);
inline constexpr const char* kAllocateSymbol = "kvscope_cuda_allocate";

using Release = void(void* device_memory);
inline constexpr const char* kReleaseSymbol = "kvscope_cuda_release";

/// Between host and device, either way round, finished on return.
using Copy = bool(void* to, const void* from, size_t bytes, char* error, size_t error_size);
inline constexpr const char* kCopySymbol = "kvscope_cuda_copy";

/// `problem` as the CPU twin gets it: checked, with scale and strides filled in, its arrays in device memory.
using RunWindowAttention = bool(const WindowAttention& problem, char* error, size_t error_size);
inline constexpr const char* kWindowAttentionSymbol = "kvscope_cuda_window_attention";

}  // namespace kvscope::kernels::cuda::abi
