#include "kernels/threads/parallel.h"

#include "kernels/threads/lowest_failure.h"
#include "kernels/threads/team.h"

namespace kvscope::kernels {

namespace {

/// Below this number of elements (about 0.1 ms of work), waking other threads costs more than it gains.
constexpr int64_t least_parallel_elements = 1 << 17;

}  // namespace

void parallel_for(int64_t n, int64_t elements, const std::function<void(int64_t)>& body) {
    if (n < 2 || elements < least_parallel_elements) {
        for (int64_t i = 0; i < n; ++i) body(i);
        return;
    }
    LowestFailure failure;
    over_parts(threads(), n, 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) failure.guard(i, [&] { body(i); });
    });
    failure.rethrow();
}

}  // namespace kvscope::kernels
