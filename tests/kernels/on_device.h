#pragma once

#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/cuda/abi.h"
#include "kernels/cuda_library.h"

/// Helpers for tests that run a kernel of libkvscope_cuda.so on their own arrays.
namespace kvscope::kernels::testing {

template <class Function>
[[nodiscard]] Function* device_function(const char* symbol) {
    return reinterpret_cast<Function*>(cuda::find_library_function(symbol));
}

/// Calls a function of the library and fails the test if it fails.
template <class Function, class... Arguments>
void call_device(const char* symbol, Arguments... arguments) {
    std::array<char, 512> message{};
    const bool succeeded = device_function<Function>(symbol)(arguments..., message.data(), message.size());
    INFO(message.data());
    REQUIRE(succeeded);
}

class DeviceMemory {
 public:
    explicit DeviceMemory(size_t bytes) { call_device<cuda::abi::Allocate>(cuda::abi::allocate_symbol, &data_, bytes); }
    ~DeviceMemory() { device_function<cuda::abi::Release>(cuda::abi::release_symbol)(data_); }
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    [[nodiscard]] void* data() const { return data_; }
    void copy_from(const void* host, size_t bytes) { copy(data_, host, bytes); }
    void copy_to(void* host, size_t bytes) const { copy(host, data_, bytes); }

 private:
    static void copy(void* to, const void* from, size_t bytes) {
        call_device<cuda::abi::Copy>(cuda::abi::copy_symbol, to, from, bytes);
    }

    void* data_ = nullptr;
};

/// Copies of arrays on the device.
class Mirror {
 public:
    template <class T>
    void add(std::vector<T>& host) {
        if (host.empty()) return;
        const size_t bytes = host.size() * sizeof(T);
        copies_.push_back({reinterpret_cast<char*>(host.data()), bytes, std::make_unique<DeviceMemory>(bytes)});
        copies_.back().memory->copy_from(host.data(), bytes);
    }

    /// Returns the device address for a pointer into one of the arrays.
    template <class T>
    [[nodiscard]] T* operator()(T* host) const {
        const auto* at = reinterpret_cast<const char*>(host);
        for (const Copy& copy : copies_)
            if (at >= copy.host && at < copy.host + copy.bytes)
                return reinterpret_cast<T*>(static_cast<char*>(copy.memory->data()) + (at - copy.host));
        REQUIRE(host == nullptr);
        return nullptr;
    }
    [[nodiscard]] const void* operator()(const void* host) const { return (*this)(static_cast<const char*>(host)); }
    [[nodiscard]] void* operator()(void* host) const { return (*this)(static_cast<char*>(host)); }

    void fetch() const {
        for (const Copy& copy : copies_) copy.memory->copy_to(copy.host, copy.bytes);
    }

 private:
    struct Copy {
        char* host;
        size_t bytes;
        std::unique_ptr<DeviceMemory> memory;
    };
    std::vector<Copy> copies_;
};

/// Calls `run` with a workspace and waits for its work on the default stream.
inline void on_device(size_t workspace_bytes, const std::function<bool(void*, size_t, void*, char*, size_t)>& run) {
    const DeviceMemory workspace(workspace_bytes);
    std::array<char, 512> message{};
    const bool started = run(workspace.data(), workspace_bytes, nullptr, message.data(), message.size());
    INFO(message.data());
    REQUIRE(started);
    call_device<cuda::abi::Synchronize>(cuda::abi::synchronize_symbol, static_cast<void*>(nullptr));
}

/// Runs a kernel for one problem without a workspace.
template <class Problem>
void on_device(const char* symbol, const Problem& problem, size_t workspace_bytes = 0) {
    const auto kernel = device_function<cuda::abi::Kernel<Problem>>(symbol);
    on_device(workspace_bytes, [&](void* workspace, size_t bytes, void* stream, char* error, size_t size) {
        return kernel(&problem, workspace, bytes, stream, error, size);
    });
}

}  // namespace kvscope::kernels::testing
