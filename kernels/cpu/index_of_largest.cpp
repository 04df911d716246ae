#include "kernels/index_of_largest.h"

#include <algorithm>

namespace kvscope::kernels {

int64_t index_of_largest(const float* values, int64_t n) {
    if (n <= 0) return -1;
    // Uses independent lanes, because in a single chain each comparison would wait for the previous one.
    constexpr int64_t kLanes = 16;
    float lanes[kLanes];
    int is_nan[kLanes] = {};
    std::fill(lanes, lanes + kLanes, values[0]);
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
        for (int64_t lane = 0; lane < kLanes; ++lane) {
            const float value = values[i + lane];
            lanes[lane] = lanes[lane] < value ? value : lanes[lane];
            is_nan[lane] |= value != value;
        }
    }
    for (; i < n; ++i) {
        lanes[0] = lanes[0] < values[i] ? values[i] : lanes[0];
        is_nan[0] |= values[i] != values[i];
    }
    if (std::find(is_nan, is_nan + kLanes, 1) != is_nan + kLanes) return -1;
    return std::find(values, values + n, *std::max_element(lanes, lanes + kLanes)) - values;
}

}  // namespace kvscope::kernels
