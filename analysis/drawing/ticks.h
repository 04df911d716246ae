#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/drawing/figure.h"

namespace kvscope::analysis {

/// Ticks of an axis. Their labels omit the factor 10^exponent.
struct Ticks {
    std::vector<Tick> ticks;
    int exponent = 0;
};

/// Returns the axis' own ticks, or at most `max_ticks` (at least 2) round values. Very large or small values share an
/// exponent.
[[nodiscard]] Ticks ticks_for(const Axis& axis, size_t max_ticks);

/// Returns "Title (10⁻⁶ unit)", without missing parts.
[[nodiscard]] std::string axis_title(const std::string& title, const std::string& unit, int exponent);

}  // namespace kvscope::analysis
