#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdio>

/// A function that libkvscope_cuda.so shows to the outside.
#define KVSCOPE_CUDA_EXPORT extern "C" __attribute__((visibility("default")))

namespace kvscope::kernels::cuda {

/// Reports a failed CUDA call; true where it succeeded.
inline bool succeeded(cudaError_t status, const char* what, char* error, size_t error_size) {
    if (status == cudaSuccess) return true;
    cudaGetLastError();  // or the next launch is blamed for it
    std::snprintf(error, error_size, "%s: %s (%s)", what, cudaGetErrorString(status), cudaGetErrorName(status));
    return false;
}

}  // namespace kvscope::kernels::cuda
