#pragma once

#include <optional>
#include <string_view>

#include "analysis/color_map.h"

namespace kvscope::analysis {

/// Returns the color of a policy, which depends only on its name. The demo's policies have the most distinct colors on
/// white, also for red-green color-blind readers. Unlisted policies get one of a few other colors. `full` is black and
/// not included.
Rgb policy_color(std::string_view policy);

/// Returns a lighter shade of a policy's color, for other parameters or traces; it stays distinct from other policies'
/// colors. Other colors are mixed with 40 % white (paler) or black (darker).
Rgb paler(Rgb color);
Rgb darker(Rgb color);

/// Returns the replacement of a policy's color or its paler shade on a dark background: same hue, sufficient
/// brightness, equally distinct. Returns nullopt for other colors, which the caller must lighten if they are too dark.
std::optional<Rgb> policy_color_on_dark(Rgb color);

}  // namespace kvscope::analysis
