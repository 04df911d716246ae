#include "kernels/index_of_largest.h"

#include <algorithm>

namespace kvscope::kernels {

int64_t index_of_largest(const float* values, int64_t n) {
    if (n <= 0) return -1;
    // Uses independent lanes, because in a single chain each comparison would wait for the previous one.
    constexpr int64_t n_lanes = 16;
    float lanes[n_lanes];
    int is_nan[n_lanes] = {};
    std::fill(lanes, lanes + n_lanes, values[0]);
    int64_t i = 0;
    for (; i + n_lanes <= n; i += n_lanes) {
        for (int64_t lane = 0; lane < n_lanes; ++lane) {
            const float value = values[i + lane];
            lanes[lane] = lanes[lane] < value ? value : lanes[lane];
            is_nan[lane] |= value != value;
        }
    }
    for (; i < n; ++i) {
        lanes[0] = lanes[0] < values[i] ? values[i] : lanes[0];
        is_nan[0] |= values[i] != values[i];
    }
    if (std::find(is_nan, is_nan + n_lanes, 1) != is_nan + n_lanes) return -1;
    return std::find(values, values + n, *std::max_element(lanes, lanes + n_lanes)) - values;
}

}  // namespace kvscope::kernels
