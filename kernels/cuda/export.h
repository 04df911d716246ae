#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdio>

// Marks a function that libkvscope_cuda.so exports.
#define KVSCOPE_CUDA_EXPORT extern "C" __attribute__((visibility("default")))

namespace kvscope::kernels::cuda {

[[nodiscard]] inline bool succeeded(cudaError_t status, const char* what, char* error, size_t error_size) {
    if (status == cudaSuccess) return true;
    cudaGetLastError();  // clears the error, which the next launch would otherwise report
    std::snprintf(error, error_size, "%s: %s (%s)", what, cudaGetErrorString(status), cudaGetErrorName(status));
    return false;
}

}  // namespace kvscope::kernels::cuda
