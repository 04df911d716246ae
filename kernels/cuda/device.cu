#include "kernels/cuda/abi.h"
#include "kernels/cuda/export.h"

using kvscope::kernels::cuda::succeeded;

namespace {

__global__ void nothing() {}

}  // namespace

KVSCOPE_CUDA_EXPORT int kvscope_cuda_version() { return kvscope::kernels::cuda::abi::abi_version; }

KVSCOPE_CUDA_EXPORT bool kvscope_cuda_probe(char* error, size_t error_size) {
    int count = 0;
    if (!succeeded(cudaGetDeviceCount(&count), "looking for a GPU", error, error_size)) return false;
    if (count == 0) {
        std::snprintf(error, error_size, "the driver found no GPU");
        return false;
    }
    // The next call fails if the library has no code for this GPU. The calls above succeed even then.
    cudaFuncAttributes attributes;
    return succeeded(cudaFuncGetAttributes(&attributes, nothing), "looking for code for this GPU", error, error_size);
}

KVSCOPE_CUDA_EXPORT bool kvscope_cuda_allocate(void** device_memory, size_t bytes, char* error, size_t error_size) {
    return succeeded(cudaMalloc(device_memory, bytes), "allocating device memory", error, error_size);
}

KVSCOPE_CUDA_EXPORT void kvscope_cuda_release(void* device_memory) { cudaFree(device_memory); }

KVSCOPE_CUDA_EXPORT bool kvscope_cuda_copy(void* to, const void* from, size_t bytes, char* error, size_t error_size) {
    return succeeded(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "copying to or from the device", error,
                     error_size);
}

KVSCOPE_CUDA_EXPORT bool kvscope_cuda_synchronize(void* stream, char* error, size_t error_size) {
    return succeeded(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "waiting for the device", error,
                     error_size);
}

KVSCOPE_CUDA_EXPORT bool kvscope_cuda_count_devices(int* count, char* error, size_t error_size) {
    return succeeded(cudaGetDeviceCount(count), "looking for a GPU", error, error_size);
}

KVSCOPE_CUDA_EXPORT bool kvscope_cuda_set_device(int device, char* error, size_t error_size) {
    return succeeded(cudaSetDevice(device), "choosing a GPU", error, error_size);
}

KVSCOPE_CUDA_EXPORT bool kvscope_cuda_describe_device(int device,
                                                      kvscope::kernels::cuda::abi::DeviceProperties* properties,
                                                      char* error, size_t error_size) {
    const auto done = [&](cudaError_t status) {
        return succeeded(status, "reading the properties of a GPU", error, error_size);
    };
    const auto attribute = [&](int* value, cudaDeviceAttr which) {
        return done(cudaDeviceGetAttribute(value, which, device));
    };
    cudaDeviceProp all;
    if (!done(cudaGetDeviceProperties(&all, device))) return false;
    std::snprintf(properties->name, sizeof properties->name, "%s", all.name);
    properties->total_bytes = all.totalGlobalMem;
    properties->major = all.major;
    properties->minor = all.minor;
    properties->n_multiprocessors = all.multiProcessorCount;
    int kilohertz = 0, bits = 0;
    if (!attribute(&kilohertz, cudaDevAttrMemoryClockRate) || !attribute(&bits, cudaDevAttrGlobalMemoryBusWidth))
        return false;
    properties->bytes_per_second = 2.0 * 1000.0 * kilohertz * bits / 8;  // two transfers per clock
    int current = 0;
    size_t total = 0;
    if (!done(cudaGetDevice(&current)) || !done(cudaSetDevice(device))) return false;
    const bool told = done(cudaMemGetInfo(&properties->free_bytes, &total));
    return done(cudaSetDevice(current)) && told;
}
