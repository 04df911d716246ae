#pragma once

#include <atomic>
#include <cstdint>

#include "kernels/threads/team.h"

namespace kvscope::kernels {

/// Calls body(i, scratch) for i in [0, count), with one scratch per thread of the team. Throws the first exception.
template <typename Scratch, typename Body>
void parallel_with_scratch(int64_t count, Body&& body) {
    std::atomic<int64_t> unclaimed{0};
    run_on_thread_team(count > 1 ? threads() : 1, [&](int) {
        try {
            Scratch scratch{};
            for (int64_t i = unclaimed++; i < count; i = unclaimed++) body(i, scratch);
        } catch (...) {
            unclaimed = count;
            throw;
        }
    });
}

}  // namespace kvscope::kernels
