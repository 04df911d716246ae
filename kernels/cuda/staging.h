#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace kvscope::kernels::cuda {

/// Copies host memory to the device behind what is on the stream, through pinned memory: the caller may reuse `from` at
/// once, and the host does not wait for what the device has still to do. From pageable memory CUDA's own copy would.
bool upload_staged(const char* kernel, void* to, const void* from, size_t bytes, cudaStream_t stream, char* error,
                   size_t error_size);

}  // namespace kvscope::kernels::cuda
