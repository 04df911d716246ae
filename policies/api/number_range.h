#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace kvscope::policies {

/// A range of whole numbers with more values needs a step.
inline constexpr double most_values_without_step = 64;

/// The texts of a range: "first-last", "first-last+step" or "first-last*factor".
struct RangeText {
    std::string_view first, last;
    std::optional<std::string_view> step = {};  ///< step or factor
    bool is_factor = false;
};

/// Returns nullopt if the text has no '-' between two texts: "8", "-8" and "1e-3" are not ranges.
[[nodiscard]] std::optional<RangeText> split_range(std::string_view text);

/// Returns first, first + step, … or first, first · step, … up to `last`. Removes the rounding errors of decimal steps.
/// @throws std::invalid_argument if the range runs backwards, its step has no effect, or it has more than 1,000 values
[[nodiscard]] std::vector<double> values_of_range(double first, double last, double step, bool is_factor);

/// Rounds to 14 significant digits to remove the rounding errors of repeated steps.
[[nodiscard]] double without_rounding_noise(double value);

}  // namespace kvscope::policies
