#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "kernels/cuda/export.h"
#include "kernels/cuda/staging.h"

namespace kvscope::kernels::cuda {

namespace {

constexpr size_t kHalf = size_t{4} << 20;
constexpr int kMostDevices = 64;

/// Pinned memory in two halves: one is filled while the device reads the other.
struct Ring {
    std::mutex mutex;
    char* memory = nullptr;
    std::array<cudaEvent_t, 2> read = {};  ///< behind the last copy out of a half
    int half = 0;
    size_t used = 0;

    cudaError_t open() {
        if (memory) return cudaSuccess;
        for (cudaEvent_t& event : read) {
            if (event) continue;
            if (const cudaError_t status = cudaEventCreateWithFlags(&event, cudaEventDisableTiming)) return status;
        }
        return cudaHostAlloc(reinterpret_cast<void**>(&memory), 2 * kHalf, cudaHostAllocDefault);
    }

    /// Goes to the other half, once the device has read what is in it.
    cudaError_t turn(cudaStream_t stream) {
        if (const cudaError_t status = cudaEventRecord(read[static_cast<size_t>(half)], stream)) return status;
        half = 1 - half;
        used = 0;
        return cudaEventSynchronize(read[static_cast<size_t>(half)]);  // at once where it was never recorded
    }

    cudaError_t upload(char* to, const char* from, size_t bytes, cudaStream_t stream) {
        if (const cudaError_t status = open()) return status;
        while (bytes > 0) {
            if (used + std::min(bytes, kHalf / 2) > kHalf) {
                if (const cudaError_t status = turn(stream)) return status;
            }
            const size_t piece = std::min(bytes, kHalf - used);
            char* place = memory + static_cast<size_t>(half) * kHalf + used;
            std::memcpy(place, from, piece);
            if (const cudaError_t status = cudaMemcpyAsync(to, place, piece, cudaMemcpyHostToDevice, stream))
                return status;
            to += piece, from += piece, bytes -= piece, used += piece;
        }
        return cudaSuccess;
    }
};

/// For as long as the program: the driver may be gone before static objects are.
Ring& ring_of(int device) {
    static auto& rings = *new std::array<Ring, kMostDevices>;
    return rings[static_cast<size_t>(device)];
}

}  // namespace

bool upload_staged(const char* kernel, void* to, const void* from, size_t bytes, cudaStream_t stream, char* error,
                   size_t error_size) {
    int device = 0;
    if (!succeeded(cudaGetDevice(&device), kernel, error, error_size)) return false;
    if (device >= kMostDevices)
        return succeeded(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), kernel, error, error_size);
    Ring& ring = ring_of(device);
    const std::lock_guard lock(ring.mutex);
    return succeeded(ring.upload(static_cast<char*>(to), static_cast<const char*>(from), bytes, stream), kernel, error,
                     error_size);
}

}  // namespace kvscope::kernels::cuda
