#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <exception>

#include "kernels/cuda/export.h"
#include "kernels/cuda/staging.h"
#include "kernels/cuda/workspace.h"

namespace kvscope::kernels::cuda {

/// Bytes of shared memory per block that all supported GPUs allow; sm_86 and sm_89 allow the least.
inline constexpr size_t most_shared_bytes = 99 << 10;

struct Call {
    void* workspace;
    size_t workspace_bytes;
    void* stream;
    char* error;
    size_t error_size;

    [[nodiscard]] cudaStream_t queue() const { return static_cast<cudaStream_t>(stream); }

    [[nodiscard]] bool refuse(const char* kernel, const char* why) const {
        std::snprintf(error, error_size, "%s: %s", kernel, why);
        return false;
    }

    /// Creates the staging for at most `host_bytes` of host data. The workspace must also have room for these data.
    [[nodiscard]] Staging staging(size_t host_bytes) const { return {host_bytes, queue()}; }
    [[nodiscard]] Staging staging() const { return staging(workspace_bytes); }

    [[nodiscard]] bool fits(const char* kernel, const Workspace& layout) const {
        if (layout.bytes() > workspace_bytes) return refuse(kernel, "the workspace is too small");
        if (reinterpret_cast<uintptr_t>(workspace) % workspace_alignment != 0)
            return refuse(kernel, "the workspace is not aligned to 256 bytes");
        return true;
    }

    /// Like fits(), but also copies the host's data to its place in the layout.
    [[nodiscard]] bool upload(const char* kernel, const Workspace& layout, Staging& staging) const {
        if (!fits(kernel, layout)) return false;
        if (layout.host().empty()) return true;
        return staging.send(kernel, layout.host_copy_or_device(), layout.host().data(), layout.host().size(), error,
                            error_size);
    }

    /// Lets a kernel use dynamic shared memory of the size of Shared, even above the default limit.
    template <class Shared, class Kernel>
    [[nodiscard]] bool opted_in(const char* name, Kernel* kernel) const {
        static_assert(sizeof(Shared) <= most_shared_bytes);
        return succeeded(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                              cudaFuncAttributeMaxDynamicSharedMemorySize, int{sizeof(Shared)}),
                         name, error, error_size);
    }

    [[nodiscard]] bool launched(const char* kernel) const {
        return succeeded(cudaGetLastError(), kernel, error, error_size);
    }

    template <class Body>
    [[nodiscard]] bool guarded(const char* kernel, const Body& body) const {
        try {
            return body();
        } catch (const std::exception& thrown) {
            return refuse(kernel, thrown.what());
        }
    }
};

inline constexpr int64_t most_blocks = 0x7fffffff;

[[nodiscard]] inline unsigned to_grid_size(int64_t n_blocks) { return static_cast<unsigned>(n_blocks); }

}  // namespace kvscope::kernels::cuda
