#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

/// How a call divides the workspace that it is given: arrays of the kernels' own, and what the host writes, which is
/// copied to the device as one; arrays placed between such contents are copied along. A layout without memory tells how
/// much it takes.
namespace kvscope::kernels::cuda {

inline constexpr size_t kWorkspaceAlignment = 256;

class Workspace {
 public:
    Workspace() = default;
    explicit Workspace(void* device) : device_(static_cast<char*>(device)) {}

    template <class T>
    T* place(size_t n) {
        T* at = reinterpret_cast<T*>(device_ + bytes_);
        bytes_ += (n * sizeof(T) + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
        return at;
    }

    template <class T>
    const T* place(std::span<const T> contents) {
        if (host_.empty()) host_begin_ = bytes_;
        const size_t begin = bytes_ - host_begin_;
        const T* at = place<T>(contents.size());
        host_.resize(bytes_ - host_begin_);
        if (!contents.empty()) std::memcpy(host_.data() + begin, contents.data(), contents.size_bytes());
        return at;
    }

    size_t bytes() const { return bytes_; }

    /// What the host writes, and where it comes to lie.
    std::span<const char> host() const { return host_; }
    char* host_place() const { return device_ + host_begin_; }

 private:
    char* device_ = reinterpret_cast<char*>(kWorkspaceAlignment);  // no memory, and no null that offsets are added to
    size_t bytes_ = 0, host_begin_ = 0;
    std::vector<char> host_;
};

}  // namespace kvscope::kernels::cuda
