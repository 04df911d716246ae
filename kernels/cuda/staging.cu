#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "kernels/cuda/export.h"
#include "kernels/cuda/staging.h"
#include "kernels/cuda/workspace.h"

namespace kvscope::kernels::cuda {

namespace {

constexpr size_t half_bytes = size_t{16} << 20;
constexpr size_t most_reserved_bytes = half_bytes / 4;  ///< at most a quarter of a half, so that halves are well filled

}  // namespace

/// Pinned memory and equally much device memory in two halves: the host fills one while the device reads the other.
struct Ring {
    std::mutex mutex;
    char* memory = nullptr;
    char* twin = nullptr;  ///< device memory, or nullptr if there was not enough
    cudaStream_t copies = nullptr;
    cudaEvent_t arrived = nullptr;         ///< recorded after the last copy to the twin
    std::array<cudaEvent_t, 2> read = {};  ///< recorded after the last reader of each half
    int half = 0;
    size_t used = 0;

    cudaError_t open() {
        if (memory) return cudaSuccess;
        for (cudaEvent_t* event : {&read[0], &read[1], &arrived}) {
            if (*event) continue;
            if (const cudaError_t status = cudaEventCreateWithFlags(event, cudaEventDisableTiming)) return status;
        }
        if (!copies) {
            if (const cudaError_t status = cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking)) return status;
        }
        if (!twin && cudaMalloc(reinterpret_cast<void**>(&twin), 2 * half_bytes)) {
            twin = nullptr;
            cudaGetLastError();  // device memory is full, so the host's data go to the callers' workspaces
        }
        return cudaHostAlloc(reinterpret_cast<void**>(&memory), 2 * half_bytes, cudaHostAllocDefault);
    }

    size_t begin() const { return static_cast<size_t>(half) * half_bytes + used; }

    /// Switches to the other half after the device has read its contents.
    cudaError_t turn(cudaStream_t stream) {
        if (const cudaError_t status = cudaEventRecord(read[static_cast<size_t>(half)], stream)) return status;
        half = 1 - half;
        used = 0;
        return cudaEventSynchronize(read[static_cast<size_t>(half)]);  // returns immediately if never recorded
    }

    char* reserve(size_t bytes, cudaStream_t stream) {
        if (bytes > most_reserved_bytes) return nullptr;
        const bool has_room =
            open() == cudaSuccess && twin && (used + bytes <= half_bytes || turn(stream) == cudaSuccess);
        if (has_room) return twin + begin();
        cudaGetLastError();  // clears the error, which the next launch would otherwise report; send() reports it again
        return nullptr;
    }

    cudaError_t send(const char* from, size_t bytes, cudaStream_t stream) {
        std::memcpy(memory + begin(), from, bytes);
        if (const cudaError_t status =
                cudaMemcpyAsync(twin + begin(), memory + begin(), bytes, cudaMemcpyHostToDevice, copies))
            return status;
        used += aligned_bytes(bytes);
        if (const cudaError_t status = cudaEventRecord(arrived, copies)) return status;
        return cudaStreamWaitEvent(stream, arrived);
    }

    cudaError_t send_in_order(char* to, const char* from, size_t bytes, cudaStream_t stream) {
        if (const cudaError_t status = open()) return status;
        while (bytes > 0) {
            if (used + std::min(bytes, half_bytes / 2) > half_bytes) {
                if (const cudaError_t status = turn(stream)) return status;
            }
            const size_t piece = std::min(bytes, half_bytes - used);
            std::memcpy(memory + begin(), from, piece);
            if (const cudaError_t status = cudaMemcpyAsync(to, memory + begin(), piece, cudaMemcpyHostToDevice, stream))
                return status;
            to += piece, from += piece, bytes -= piece;
            used += aligned_bytes(piece);
        }
        return cudaSuccess;
    }
};

namespace {

/// Returns a stream's ring. Rings are never destroyed, because the driver may already be unloaded at exit.
Ring& ring_of(cudaStream_t stream) {
    static auto& mutex = *new std::mutex;
    static auto& rings = *new std::map<std::pair<int, cudaStream_t>, std::unique_ptr<Ring>>;
    int device = 0;
    cudaGetDevice(&device);
    const std::lock_guard lock(mutex);
    std::unique_ptr<Ring>& ring = rings[{device, stream}];
    if (!ring) ring = std::make_unique<Ring>();
    return *ring;
}

}  // namespace

Staging::Staging(size_t most_bytes, cudaStream_t stream)
    : stream_(stream), ring_(&ring_of(stream)), lock_(ring_->mutex), place_(ring_->reserve(most_bytes, stream)) {}

bool Staging::send(const char* kernel, char* to, const char* from, size_t bytes, char* error, size_t error_size) {
    return succeeded(to == place_ ? ring_->send(from, bytes, stream_) : ring_->send_in_order(to, from, bytes, stream_),
                     kernel, error, error_size);
}

}  // namespace kvscope::kernels::cuda
