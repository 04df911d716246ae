#pragma once

#include <string>

namespace kvscope::analysis {

/// Formats numbers for sentences, tooltips and the app's small tables. Exports use table_format.h and ticks.h.

/// Formats a number with `digits` significant digits, trailing zeros included. Uses an exponent below 0.0001 and from
/// 1,000,000. NaN becomes "–".
[[nodiscard]] std::string format_number(double value, int digits = 3);

/// Returns the number of significant digits that two numbers need to look different: at least 3, at most 17.
[[nodiscard]] int count_distinguishing_digits(double a, double b);

/// Formats a share as "12.3 %", a small one as "0.0031 %". Shares below 1 never become "100.0 %". NaN becomes "–".
[[nodiscard]] std::string format_share(double share);

/// Formats a change of a share with its sign: "+12.3 %", "−0.0031 %".
[[nodiscard]] std::string format_change(double share);

}  // namespace kvscope::analysis
