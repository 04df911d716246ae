#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

namespace kvscope::analysis {

/// Returns the mean of the values that are not NaN, or NaN if there are none. @param values range of real numbers
template <class Values>
[[nodiscard]] double mean_of_known(const Values& values) {
    double sum = 0;
    std::size_t n = 0;
    for (const double value : values) {
        if (std::isnan(value)) continue;
        sum += value;
        ++n;
    }
    return n > 0 ? sum / static_cast<double>(n) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace kvscope::analysis
