#pragma once

#include <atomic>
#include <cstdint>

namespace kvscope::gui {

/// A number that the process gives out once, for what an address would not tell from what lay there before. Any thread.
inline uint64_t unique_id() {
    static std::atomic<uint64_t> last = 0;
    return ++last;
}

}  // namespace kvscope::gui
