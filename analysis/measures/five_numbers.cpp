#include "analysis/measures/five_numbers.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace kvscope::analysis {

FiveNumbers five_numbers(std::vector<double> values) {
    if (values.empty()) throw std::invalid_argument("five numbers: there are no values");
    if (std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); }))
        throw std::invalid_argument("five numbers: a value is NaN");
    std::sort(values.begin(), values.end());
    const auto at = [&](double share) {
        const double place = share * static_cast<double>(values.size() - 1);
        const auto below = static_cast<size_t>(place);
        const size_t above = std::min(below + 1, values.size() - 1);
        return std::lerp(values[below], values[above], place - static_cast<double>(below));
    };
    return {values.front(), at(0.25), at(0.5), at(0.75), values.back()};
}

}  // namespace kvscope::analysis
