#pragma once

#include <string>
#include <string_view>

namespace kvscope::gui {

/// Returns a one-line definition of a measure, with paper and equation, or nullptr if there is none.
/// @param name column of the table of runs, or measure of a figure, e.g. "overlap"
[[nodiscard]] const char* measure_definition(std::string_view name);

[[nodiscard]] std::string score_definition(const std::string& policy);

}  // namespace kvscope::gui
