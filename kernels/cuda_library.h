#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace kvscope::kernels::cuda {

/// The CUDA side cannot be used here; what() says which piece is missing and what to do.
struct Unavailable : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A CUDA call failed although everything is there (out of device memory, a fault on the device).
struct Failed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Why our own kernels cannot run on a GPU here, as a person reads it; empty where they can. Asked once.
const std::string& unavailable_reason();

inline bool available() { return unavailable_reason().empty(); }

/// A function that libkvscope_cuda.so exports; see kernels/cuda/abi.h. The library is opened at the first call, from
/// the folder that the environment variable KVSCOPE_CUDA_LIBRARY_DIR names, else from beside the program, from ../lib
/// and
/// ../lib/kvscope seen from it, or from where the dynamic linker looks.
/// @throws Unavailable
void* symbol(const char* name);

/// Device memory, for callers without a library of their own that manages it.
/// @throws Unavailable, Failed
class DeviceMemory {
 public:
    explicit DeviceMemory(size_t bytes);
    ~DeviceMemory();
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    void* data() const { return data_; }
    void copy_from(const void* host, size_t bytes);
    void copy_to(void* host, size_t bytes) const;

 private:
    void* data_ = nullptr;
};

}  // namespace kvscope::kernels::cuda
