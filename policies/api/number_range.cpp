#include "policies/api/number_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>

#include "policies/registry/trimmed.h"

namespace kvscope::policies {
namespace {

constexpr std::size_t most_values_of_range = 1000;

/// Finds one of the characters from `begin` on, unless it is the sign of an exponent, as in "1e-3".
std::size_t find_operator(std::string_view text, std::string_view characters, std::size_t begin) {
    for (std::size_t at = text.find_first_of(characters, begin); at != std::string_view::npos;
         at = text.find_first_of(characters, at + 1)) {
        const bool is_exponent = at > 0 && (text[at - 1] == 'e' || text[at - 1] == 'E');
        if (!is_exponent) return at;
    }
    return std::string_view::npos;
}

}  // namespace

std::optional<RangeText> split_range(std::string_view text) {
    const std::size_t dash = find_operator(text, "-", 1);
    if (dash == std::string_view::npos) return std::nullopt;
    const std::string_view rest = text.substr(dash + 1);
    const std::size_t sign = find_operator(rest, "+*", 1);
    RangeText range{.first = trimmed(text.substr(0, dash)), .last = trimmed(rest.substr(0, sign))};
    if (sign != std::string_view::npos) {
        range.step = trimmed(rest.substr(sign + 1));
        range.is_factor = rest[sign] == '*';
    }
    return range;
}

std::vector<double> values_of_range(double first, double last, double step, bool is_factor) {
    if (!std::isfinite(first) || !std::isfinite(last)) throw std::invalid_argument("the ends must be finite numbers.");
    if (first > last) throw std::invalid_argument("the range runs backwards.");
    if (is_factor && !(step > 1.0 && std::isfinite(step))) throw std::invalid_argument("the factor must be above 1.");
    if (is_factor && first <= 0.0) throw std::invalid_argument("a range with a factor must begin above 0.");
    if (!is_factor && !(step > 0.0 && std::isfinite(step))) throw std::invalid_argument("the step must be above 0.");
    std::vector<double> values;
    const double slack = 1e-12 * std::abs(last);
    double value = first;
    for (std::size_t i = 0; value <= last + slack; ++i) {
        if (i == most_values_of_range) throw std::invalid_argument("the range has more than 1000 values.");
        values.push_back(without_rounding_noise(std::min(value, last)));
        value = is_factor ? value * step : first + static_cast<double>(i + 1) * step;
    }
    return values;
}

double without_rounding_noise(double value) { return std::stod(fmt::format("{:.14g}", value)); }

}  // namespace kvscope::policies
