#pragma once

#include <atomic>
#include <cstdint>

namespace kvscope {

/// Returns a number that is unique in this process. Unlike an address, the number is never reused. Thread-safe.
[[nodiscard]] inline uint64_t unique_id() {
    static std::atomic<uint64_t> last = 0;
    return ++last;
}

}  // namespace kvscope
