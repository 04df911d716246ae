#pragma once

#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace kvscope::engine::testing {

/// Counts the bytes of all tensors, so that memory tests do not depend on the process's resident memory. Tensors may
/// outlive the counter.
class CountedMemory {
 public:
    CountedMemory() : before_(c10::GetCPUAllocator()) {
        live() = 0;
        peak() = 0;
        c10::SetCPUAllocator(&allocator(), 0xff);
    }
    ~CountedMemory() { c10::SetCPUAllocator(before_, 0xff); }
    CountedMemory(const CountedMemory&) = delete;
    CountedMemory& operator=(const CountedMemory&) = delete;

    [[nodiscard]] size_t now() const { return live(); }
    [[nodiscard]] size_t most() const { return peak(); }
    void forget_most() { peak() = live().load(); }

 private:
    [[nodiscard]] static std::atomic<size_t>& live() {
        static std::atomic<size_t> bytes{0};
        return bytes;
    }
    [[nodiscard]] static std::atomic<size_t>& peak() {
        static std::atomic<size_t> bytes{0};
        return bytes;
    }

    static constexpr size_t header = 64;  ///< holds the size, before memory with libtorch's alignment

    class Allocator final : public c10::Allocator {
     public:
        [[nodiscard]] c10::DataPtr allocate(size_t n) override {
            auto* block = static_cast<char*>(std::aligned_alloc(64, header + (n + 63) / 64 * 64));
            if (!block) throw std::bad_alloc();
            std::memcpy(block, &n, sizeof(n));
            const size_t held = live() += n;
            for (size_t most = peak(); held > most && !peak().compare_exchange_weak(most, held);) {
            }
            return {block + header, block + header, &free, c10::Device(c10::DeviceType::CPU)};
        }
        [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return &free; }
        void copy_data(void* to, const void* from, size_t n) const override { std::memcpy(to, from, n); }

     private:
        static void free(void* data) {
            char* block = static_cast<char*>(data) - header;
            size_t n = 0;
            std::memcpy(&n, block, sizeof(n));
            live() -= n;
            std::free(block);  // NOLINT(*-no-malloc): the tested allocator returns blocks of malloc()
        }
    };

    [[nodiscard]] static Allocator& allocator() {
        static Allocator made;
        return made;
    }

    c10::Allocator* before_;
};

}  // namespace kvscope::engine::testing
