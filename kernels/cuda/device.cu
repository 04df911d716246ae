#include "kernels/cuda/abi.h"
#include "kernels/cuda/export.h"

using kvscope::kernels::cuda::succeeded;

namespace {

__global__ void nothing() {}

}  // namespace

KVSCOPE_CUDA_EXPORT int kvscope_cuda_version() { return kvscope::kernels::cuda::abi::kVersion; }

KVSCOPE_CUDA_EXPORT bool kvscope_cuda_probe(char* error, size_t error_size) {
    int count = 0;
    if (!succeeded(cudaGetDeviceCount(&count), "looking for a GPU", error, error_size)) return false;
    if (count == 0) {
        std::snprintf(error, error_size, "the driver finds no GPU");
        return false;
    }
    // A GPU that the library has no code for shows here and nowhere earlier.
    cudaFuncAttributes attributes;
    return succeeded(cudaFuncGetAttributes(&attributes, nothing), "asking for code for this GPU", error, error_size);
}

KVSCOPE_CUDA_EXPORT bool kvscope_cuda_allocate(void** device_memory, size_t bytes, char* error, size_t error_size) {
    return succeeded(cudaMalloc(device_memory, bytes), "allocating device memory", error, error_size);
}

KVSCOPE_CUDA_EXPORT void kvscope_cuda_release(void* device_memory) { cudaFree(device_memory); }

KVSCOPE_CUDA_EXPORT bool kvscope_cuda_copy(void* to, const void* from, size_t bytes, char* error, size_t error_size) {
    return succeeded(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "copying to or from the device", error,
                     error_size);
}
