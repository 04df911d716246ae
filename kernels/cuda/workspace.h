#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

/// How a call divides the workspace that it is given: first what the host writes, copied to the device as one, then
/// arrays of the kernels' own. A layout without memory tells how much it takes.
namespace kvscope::kernels::cuda {

inline constexpr size_t kWorkspaceAlignment = 256;

class Workspace {
 public:
    Workspace() = default;
    explicit Workspace(void* device) : device_(static_cast<char*>(device)) {}

    /// Room for n of them; before anything else those with contents.
    template <class T>
    T* place(size_t n) {
        T* at = reinterpret_cast<T*>(device_ + bytes_);
        bytes_ += (n * sizeof(T) + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
        return at;
    }

    template <class T>
    const T* place(std::span<const T> contents) {
        const size_t begin = bytes_;
        const T* at = place<T>(contents.size());
        host_.resize(bytes_);
        if (!contents.empty()) std::memcpy(host_.data() + begin, contents.data(), contents.size_bytes());
        return at;
    }

    /// What comes behind n of them that are placed next.
    template <class T>
    Workspace behind(size_t n) const {
        Workspace ahead(device_);
        ahead.bytes_ = bytes_;
        ahead.place<T>(n);
        return ahead;
    }

    size_t bytes() const { return bytes_; }
    std::span<const char> host() const { return host_; }

 private:
    char* device_ = nullptr;
    size_t bytes_ = 0;
    std::vector<char> host_;
};

}  // namespace kvscope::kernels::cuda
