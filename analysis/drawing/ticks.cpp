#include "analysis/drawing/ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/tables/table_format.h"

namespace kvscope::analysis {
namespace {

constexpr const char* minus_sign = "\u2212";

/// Returns the smallest step of 1, 2 or 5 (or 4) times a power of ten that gives at most max_ticks ticks.
double round_step(const Axis& axis, size_t max_ticks) {
    const double span = axis.max - axis.min;
    double power = std::pow(10.0, std::floor(std::log10(span / static_cast<double>(max_ticks))));
    if (axis.whole_numbers) power = std::max(power, 1.0);
    for (;; power *= 10) {
        for (const double factor : {1.0, 2.0, 4.0, 5.0}) {
            const bool small_numbers =
                axis.whole_numbers && power < 2;  // 0, 4, 8 suits heads and layers; 0, 400, 800 is unusual
            if (factor == 4.0 && !small_numbers) continue;
            const double step = factor * power;
            const double count =
                std::floor(axis.max / step * (1 + 1e-12)) - std::ceil(axis.min / step * (1 - 1e-12)) + 1;
            if (count <= static_cast<double>(max_ticks)) return step;
        }
    }
}

std::string superscript(int exponent) {
    constexpr std::array digits = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    std::string out = exponent < 0 ? "⁻" : "";
    for (const char c : std::to_string(std::abs(exponent))) out += digits[static_cast<size_t>(c - '0')];
    return out;
}

std::string label_of(double value, int decimals) {
    const double size = std::fabs(value);
    std::string text;
    if (decimals == 0) {
        text = format_count(std::llround(size));
    } else {
        text = fmt::format("{:.{}f}", size, decimals);
    }
    const bool is_zero = text.find_first_not_of("0.") == std::string::npos;
    return value < 0 && !is_zero ? minus_sign + text : text;
}

Ticks linear_ticks(const Axis& axis, size_t max_ticks) {
    Ticks result;
    const double step = round_step(axis, max_ticks);
    const double largest = std::max(std::fabs(axis.min), std::fabs(axis.max));
    const int magnitude = static_cast<int>(std::floor(std::log10(largest)));
    if (!axis.whole_numbers && (magnitude < -3 || magnitude >= 7)) result.exponent = magnitude;
    const double unit = std::pow(10.0, result.exponent);
    const int decimals = std::clamp(static_cast<int>(-std::floor(std::log10(step / unit) + 1e-9)), 0, 12);
    const auto first = static_cast<int64_t>(std::ceil(axis.min / step - 1e-9));
    const auto last = static_cast<int64_t>(std::floor(axis.max / step + 1e-9));
    for (int64_t i = first; i <= last; ++i) {
        const double value = static_cast<double>(i) * step;
        result.ticks.push_back({value, label_of(value / unit, decimals)});
    }
    return result;
}

/// Returns ticks at 1, 2 and 5 times a power of ten, or linear ticks if there are fewer than two.
Ticks within_a_decade(const Axis& axis, size_t max_ticks) {
    Ticks result;
    for (int e = static_cast<int>(std::floor(std::log10(axis.min))); std::pow(10.0, e) <= axis.max; ++e)
        for (const double factor : {1.0, 2.0, 5.0}) {
            const double value = factor * std::pow(10.0, e);
            if (value >= axis.min * (1 - 1e-9) && value <= axis.max * (1 + 1e-9))
                result.ticks.push_back({value, label_of(value, std::max(0, -e))});
        }
    if (result.ticks.size() > max_ticks) result.ticks = {result.ticks.front(), result.ticks.back()};
    if (result.ticks.size() > 1) return result;
    Axis linear = axis;
    linear.scale = Scale::linear;
    return linear_ticks(linear, max_ticks);
}

Ticks logarithmic_ticks(const Axis& axis, size_t max_ticks) {
    Ticks result;
    const int first = static_cast<int>(std::ceil(std::log10(axis.min) - 1e-9));
    const int last = static_cast<int>(std::floor(std::log10(axis.max) + 1e-9));
    const int n = last - first + 1;
    if (n < 2) return within_a_decade(axis, max_ticks);
    const int stride = (n + static_cast<int>(max_ticks) - 1) / static_cast<int>(max_ticks);
    const bool is_short = first >= -2 && first + (last - first) / stride * stride <= 4;  // labels without powers of ten
    for (int e = first; e <= last; e += stride)
        result.ticks.push_back(
            {std::pow(10.0, e), is_short ? label_of(std::pow(10.0, e), std::max(0, -e)) : "10" + superscript(e)});
    return result;
}

}  // namespace

Ticks ticks_for(const Axis& axis, size_t max_ticks) {
    if (!axis.ticks.empty()) return {axis.ticks, 0};
    if (!(axis.max > axis.min) || !std::isfinite(axis.max - axis.min)) return {};
    max_ticks = std::max<size_t>(max_ticks, 2);
    if (axis.scale == Scale::logarithmic) return axis.min > 0 ? logarithmic_ticks(axis, max_ticks) : Ticks{};
    return linear_ticks(axis, max_ticks);
}

std::string axis_title(const std::string& title, const std::string& unit, int exponent) {
    std::string scaled = exponent == 0 ? unit : "10" + superscript(exponent) + (unit.empty() ? "" : " " + unit);
    if (scaled.empty()) return title;
    return title.empty() ? scaled : title + " (" + scaled + ")";
}

}  // namespace kvscope::analysis
