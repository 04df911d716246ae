#pragma once

#include <string_view>

#include "analysis/drawing/color_map.h"

namespace kvscope::analysis {

enum class Shade { usual, paler, darker };

/// Returns a policy's color, which depends only on the name. Colors of known policies suit color-blind readers.
/// @param shade distinguishes runs of a policy that differ in parameters or trace @param second a further shade after
/// `shade`; the app then adapts the color to dark backgrounds
[[nodiscard]] MarkColor policy_color(std::string_view policy, Shade shade = Shade::usual, Shade second = Shade::usual);

}  // namespace kvscope::analysis
