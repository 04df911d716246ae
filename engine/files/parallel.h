#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>

#include "kernels/team.h"

namespace kvscope::checkpoint {

/// Calls `body(i, scratch)` for i in [0, count) on the team's threads and rethrows the first exception after the loop.
/// Each thread has a scratch of its own.
template <typename Scratch, typename Body>
void parallel_for(int64_t count, Body&& body) {
    std::exception_ptr failure;
    std::mutex failing;
    std::atomic<int64_t> unclaimed{0};
    kernels::in_team(count > 1 ? kernels::threads() : 1, [&](int) {
        Scratch scratch;
        for (int64_t i = unclaimed++; i < count; i = unclaimed++) try {
                body(i, scratch);
            } catch (...) {
                const std::lock_guard lock(failing);
                if (!failure) failure = std::current_exception();
            }
    });
    if (failure) std::rethrow_exception(failure);
}

}  // namespace kvscope::checkpoint
