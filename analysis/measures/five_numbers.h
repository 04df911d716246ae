#pragma once

#include <vector>

namespace kvscope::analysis {

struct FiveNumbers {
    double min = 0;
    double lower_quartile = 0;
    double median = 0;
    double upper_quartile = 0;
    double max = 0;
};

/// Computes quartiles by linear interpolation between the two nearest values (Hyndman and Fan's type 7).
/// @throws std::invalid_argument if `values` is empty or contains NaN
[[nodiscard]] FiveNumbers five_numbers(std::vector<double> values);

}  // namespace kvscope::analysis
