#pragma once

#include <imgui.h>

#include "analysis/color_map.h"
#include "app/gui/drawing/theme.h"

namespace kvscope::gui {

/// Returns an opaque mix of two colors. @param share share of b
ImVec4 mixed(ImVec4 a, ImVec4 b, float share);

/// Adapts the color of an area to the background. On a dark one, black becomes the text color, near-white becomes
/// nearly the background color, and dark colors are lightened.
ImVec4 seen_on_ground(analysis::Rgb color, const Theme& theme);

/// Adapts the color of a run's curve, point, bar or chip to the background. On a dark one, black (`full`) becomes the
/// text color, policy colors use their dark variant (analysis/policy_color.h), and pale colors of runs of a second
/// trace stay.
ImVec4 line_on_ground(analysis::Rgb color, const Theme& theme);

/// Adapts a color map to the background, so that large values stand out. In difference maps, zero has the lightness of
/// the background.
analysis::ColorMap map_on_ground(analysis::ColorMap on_paper, const Theme& theme);

}  // namespace kvscope::gui
