#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <mutex>

namespace kvscope::kernels::cuda {

struct Ring;

/// What the host tells a call's kernels, on its way through pinned memory: the caller may reuse its own at once, and
/// waits for what the device has still to do only where the pinned memory is full. It lives until the kernels are
/// launched.
class Staging {
 public:
    /// @param most_bytes that the host will tell; where these are many there is no place
    Staging(size_t most_bytes, cudaStream_t stream);

    /// Where on the device what is sent should lie: nothing reads there any more, so it is copied while earlier calls
    /// are worked on. nullptr: there is no such room.
    char* place() const { return place_; }

    /// Copies to `place`, or behind what is on the stream to anywhere else.
    bool send(const char* kernel, char* to, const char* from, size_t bytes, char* error, size_t error_size);

 private:
    cudaStream_t stream_;
    Ring* ring_;
    std::unique_lock<std::mutex> lock_;
    char* place_;
};

}  // namespace kvscope::kernels::cuda
