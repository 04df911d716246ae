#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <mutex>

namespace kvscope::kernels::cuda {

struct Ring;

/// Sends the host's data for a call through pinned memory, so that the caller may reuse its memory immediately. Waits
/// only if pinned memory is full. The object must exist until the kernels are launched.
class Staging {
 public:
    /// `most_bytes` is an upper bound of the data's size. place() is nullptr if the bound is large.
    Staging(size_t most_bytes, cudaStream_t stream);

    /// Returns device memory for the data, or nullptr if none is free. No earlier call still reads the memory.
    [[nodiscard]] char* place() const { return place_; }

    /// Copies to place(), or, in the stream's order, to any other device memory.
    [[nodiscard]] bool send(const char* kernel, char* to, const char* from, size_t bytes, char* error,
                            size_t error_size);

 private:
    cudaStream_t stream_;
    Ring* ring_;
    std::unique_lock<std::mutex> lock_;
    char* place_;
};

}  // namespace kvscope::kernels::cuda
