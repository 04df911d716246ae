#include "kernels/parallel.h"

#include <exception>
#include <vector>

#include "kernels/team.h"

namespace kvscope::kernels {

namespace {

/// Below this many elements, a tenth of a millisecond or so of work, the other threads bring little: waking them takes
/// half of that, and one that other programs hold up after it began is waited for.
constexpr int64_t kWorthThreads = 1 << 17;

}  // namespace

void parallel_for(int64_t n, int64_t elements, const std::function<void(int64_t)>& body) {
    if (n < 2 || elements < kWorthThreads) {
        for (int64_t i = 0; i < n; ++i) body(i);
        return;
    }
    // An exception must not leave the thread that it arose on.
    std::vector<std::exception_ptr> failures(static_cast<size_t>(n));
    over_parts(threads(), n, 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) try {
                body(i);
            } catch (...) {
                failures[static_cast<size_t>(i)] = std::current_exception();
            }
    });
    for (const std::exception_ptr& failure : failures) {
        if (failure) std::rethrow_exception(failure);
    }
}

}  // namespace kvscope::kernels
