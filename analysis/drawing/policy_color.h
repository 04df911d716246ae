#pragma once

#include <optional>
#include <string_view>

#include "analysis/drawing/color_map.h"

namespace kvscope::analysis {

/// Returns the color of a policy, which depends only on its name. Colors of known policies suit color-blind readers.
[[nodiscard]] Rgb policy_color(std::string_view policy);

/// Returns a lighter shade of a policy's color, for other parameters or traces.
[[nodiscard]] Rgb paler(Rgb color);
[[nodiscard]] Rgb darker(Rgb color);

/// Returns the color that replaces a policy's color or shade on dark backgrounds; nullopt for other colors.
[[nodiscard]] std::optional<Rgb> policy_color_on_dark(Rgb color);

}  // namespace kvscope::analysis
