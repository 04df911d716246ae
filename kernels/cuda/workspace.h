#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

/// Divides a call's workspace into arrays for the kernels and data from the host. One copy moves all data to the
/// device. If a layout has no memory, it only computes the size.
namespace kvscope::kernels::cuda {

inline constexpr size_t workspace_alignment = 256;

[[nodiscard]] constexpr size_t aligned_bytes(size_t bytes) {
    return (bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
}

class Workspace {
 public:
    Workspace() = default;
    /// `host_copy`: device memory for data from the host, or nullptr if the data go to the workspace.
    explicit Workspace(void* device, char* host_copy = nullptr)
        : has_memory_(true), device_(static_cast<char*>(device)), host_copy_(host_copy) {}

    template <class T>
    T* place(size_t n) {
        T* at = reinterpret_cast<T*>(device_ + bytes_);
        bytes_ += aligned_bytes(n * sizeof(T));
        return at;
    }

    template <class T>
    [[nodiscard]] T* place(std::span<const T> contents) {
        if (host_bytes_ == 0) host_begin_ = bytes_;
        const size_t begin = bytes_ - host_begin_;
        T* at = place<T>(contents.size());
        host_bytes_ = bytes_ - host_begin_;
        if (!has_memory_) return at;
        host_.resize(host_bytes_);
        if (!contents.empty()) std::memcpy(host_.data() + begin, contents.data(), contents.size_bytes());
        return host_copy_ ? reinterpret_cast<T*>(host_copy_ + begin) : at;
    }

    [[nodiscard]] size_t bytes() const { return bytes_; }
    [[nodiscard]] size_t host_bytes() const { return host_bytes_; }

    [[nodiscard]] std::span<const char> host() const { return host_; }
    [[nodiscard]] char* host_copy_or_device() const { return host_copy_ ? host_copy_ : device_ + host_begin_; }

 private:
    bool has_memory_ = false;
    char* device_ = reinterpret_cast<char*>(workspace_alignment);  ///< non-null, so that offsets can be added
    char* host_copy_ = nullptr;
    size_t bytes_ = 0, host_begin_ = 0, host_bytes_ = 0;
    std::vector<char> host_;
};

}  // namespace kvscope::kernels::cuda
