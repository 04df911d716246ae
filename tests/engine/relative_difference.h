#pragma once

#include <cmath>
#include <vector>

namespace kvscope::engine::testing {

/// |a - b| / |a|
[[nodiscard]] inline double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
    double difference = 0, size = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        difference += std::pow(double{a[i]} - double{b[i]}, 2);
        size += std::pow(double{a[i]}, 2);
    }
    return std::sqrt(difference / size);
}

}  // namespace kvscope::engine::testing
