#include "analysis/tables/number_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/tables/table_format.h"

namespace kvscope::analysis {

std::string format_number(double value, int digits) {
    if (std::isnan(value)) return "–";
    if (value == 0) return "0";
    const double size = std::abs(value);
    if (size >= std::pow(10.0, digits - 1) && size < 1e6) return format_count(std::llround(value));
    std::string text = fmt::format("{:#.{}g}", size, digits);
    const size_t most = static_cast<size_t>(digits) + 1;                          // digits and the decimal point
    if (text.size() > most && text.ends_with(".0")) text.erase(text.size() - 2);  // rounded up to a whole number
    return (value < 0 ? "-" : "") + text;
}

int count_distinguishing_digits(double a, double b) {
    constexpr int most = 17;
    for (int digits = 3; digits < most; ++digits) {
        if (a == b || format_number(a, digits) != format_number(b, digits)) return digits;
    }
    return most;
}

std::string format_share(double share) {
    if (std::isnan(share)) return "–";
    const double percent = 100 * share;
    if (percent != 0 && std::abs(percent) < 0.05) return fmt::format("{:.2g} %", percent);
    return fmt::format("{:.1f} %", share < 1 ? std::min(percent, 99.9) : percent);
}

std::string format_change(double share) {
    if (std::isnan(share)) return format_share(share);
    return (share < 0 ? "−" : "+") + format_share(std::abs(share));
}

}  // namespace kvscope::analysis
