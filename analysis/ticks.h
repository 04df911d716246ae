#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/figure.h"

namespace kvscope::analysis {

/// Where an axis is marked, and the power of ten that the labels leave out (0: none).
struct Ticks {
    std::vector<Tick> ticks;
    int exponent = 0;
};

/// The axis' own ticks, or at most `max_ticks` (at least 2) at round values: multiples of 1, 2 or 5 times a power of
/// ten, whole numbers (of 4, too) only where the axis says so; powers of ten on a logarithmic axis, within a decade
/// 1, 2 and 5 times one. Labels have as many
/// decimals as their step needs and thousands separated; very large or small values share an exponent.
Ticks ticks_for(const Axis& axis, size_t max_ticks);

/// "Title (10⁻⁶ unit)", as far as there are title, unit and exponent.
std::string axis_title(const std::string& title, const std::string& unit, int exponent);

/// What a legend of whole numbers names: 1 to `most` in even steps, at most about `n` of them, `most` the last.
std::vector<int> counts_of_legend(int most, int n);

/// What a legend of sizes on a logarithmic scale names: 1, 2, 4, 16, 64 …, the largest size the last.
std::vector<double> sizes_of_legend(double largest);

}  // namespace kvscope::analysis
