// Memory of large tensors that is kept for reuse.

#include <c10/core/Allocator.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "engine/device/cpu_tensor_memory_pool.h"

using kvscope::engine::TensorMemoryPool;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool keeps_memory = false;
#else
constexpr bool keeps_memory = true;
#endif

constexpr size_t large_tensor = size_t{1} << 22;

c10::Allocator& tensor_allocator() { return *c10::GetAllocator(c10::DeviceType::CPU); }

c10::DataPtr filled(size_t bytes, uint8_t value) {
    c10::DataPtr made = tensor_allocator().allocate(bytes);
    std::memset(made.get(), value, bytes);
    return made;
}

bool is_filled(const c10::DataPtr& data, size_t bytes, uint8_t value) {
    const auto* p = static_cast<const uint8_t*>(data.get());
    return std::all_of(p, p + bytes, [&](uint8_t byte) { return byte == value; });
}

}  // namespace

TEST_CASE("a large tensor reuses the memory of the last deleted one of its size") {
    const TensorMemoryPool memory;
    const void* place = filled(large_tensor, 1).get();
    const c10::DataPtr other = filled(large_tensor + 4, 2);
    CHECK(other.get() != place);
    const c10::DataPtr same = filled(large_tensor, 3);
    if (keeps_memory) CHECK(same.get() == place);
    CHECK(filled(large_tensor, 4).get() != same.get());
    CHECK(reinterpret_cast<uintptr_t>(same.get()) % 64 == 0);
    CHECK(is_filled(same, large_tensor, 3));
    CHECK(is_filled(other, large_tensor + 4, 2));
}

TEST_CASE("tensors may outlive the object that keeps memory, and may be deleted on any thread") {
    std::vector<c10::DataPtr> tensors;
    {
        const TensorMemoryPool memory;
        for (uint8_t i = 0; i < 4; ++i) tensors.push_back(filled(large_tensor, i));
    }
    std::thread([first = std::move(tensors[0])]() mutable { first.clear(); }).join();
    auto memory = std::make_unique<TensorMemoryPool>();
    const TensorMemoryPool another;
    std::thread([second = std::move(tensors[1])]() mutable { second.clear(); }).join();
    memory.reset();  // the other object still keeps memory
    const c10::DataPtr again = filled(large_tensor, 9);
    CHECK(is_filled(tensors[2], large_tensor, 2));
    CHECK(is_filled(tensors[3], large_tensor, 3));
    CHECK(is_filled(again, large_tensor, 9));
}

TEST_CASE("the allocator supports memory without a tensor, and empty memory") {
    const TensorMemoryPool memory;
    REQUIRE(tensor_allocator().raw_deleter() != nullptr);
    for (const size_t bytes : {size_t{1}, size_t{100}, size_t{1} << 20}) {
        void* p = tensor_allocator().raw_allocate(bytes);
        std::memset(p, 1, bytes);
        tensor_allocator().raw_deallocate(p);
    }
    CHECK(tensor_allocator().allocate(0).get() == nullptr);
    const c10::DataPtr one = filled(large_tensor, 5);
    CHECK(is_filled(tensor_allocator().clone(one.get(), large_tensor), large_tensor, 5));
    if (keeps_memory) CHECK_THROWS(tensor_allocator().allocate(size_t{1} << 60));  // a sanitizer ends the program
}
