#pragma once

#include <string_view>

#include "analysis/drawing/color_map.h"

namespace kvscope::analysis {

enum class Shade { usual, paler, darker };

/// Returns a policy's color, which depends only on the name. Colors of known policies suit color-blind readers.
/// @param shade for other parameters or traces @param second applied to the shaded color; the result
/// has no color for dark backgrounds
[[nodiscard]] MarkColor policy_color(std::string_view policy, Shade shade = Shade::usual, Shade second = Shade::usual);

}  // namespace kvscope::analysis
