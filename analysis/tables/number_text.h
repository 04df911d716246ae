#pragma once

#include <string>

namespace kvscope::analysis {

/// How sentences, tooltips and the window's small tables write numbers; tables and figures that are exported have their
/// own (table_format.h, ticks.h).

/// A measured number: `digits` significant ones, zeros among them, so that columns are even; an exponent below 0.0001
/// and from 1,000,000 on. NaN: "–"
std::string format_number(double value, int digits = 3);

/// Significant digits that tell two numbers apart: 3, or as many more as it takes, at most 17.
int digits_apart(double a, double b);

/// A share in per cent with one decimal, with more where that would show a small share as none: "12.3 %", "0.0031 %".
/// What is not quite all is never "100.0 %". NaN: "–"
std::string format_share(double share);

/// The same with its sign: "+12.3 %", "−0.0031 %".
std::string format_change(double share);

}  // namespace kvscope::analysis
