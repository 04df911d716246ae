#pragma once

#include <cstdint>
#include <exception>

namespace kvscope::checkpoint {

/// Calls `body(i, scratch)` for i in [0, count) from all OpenMP threads and rethrows the first exception after the
/// loop. Each thread has a scratch of its own, which lives as long as the loop.
template <typename Scratch, typename Body>
void parallel_for(int64_t count, Body&& body) {
    std::exception_ptr failure;
#pragma omp parallel if (count > 1)
    {
        Scratch scratch;
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < count; ++i) {
            try {
                body(i, scratch);
            } catch (...) {
#pragma omp critical(kvscope_checkpoint_failure)
                if (!failure) failure = std::current_exception();
            }
        }
    }
    if (failure) std::rethrow_exception(failure);
}

}  // namespace kvscope::checkpoint
