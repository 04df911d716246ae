#pragma once

#include <imgui.h>

#include "analysis/color_map.h"
#include "app/gui/drawing/theme.h"

namespace kvscope::gui {

/// Opaque; `share` of b.
ImVec4 mixed(ImVec4 a, ImVec4 b, float share);

/// An area's colour on this ground: black becomes ink, what is nearly paper nearly this ground, and what would not be
/// seen is lightened.
ImVec4 seen_on_ground(analysis::Rgb color, const Theme& theme);

/// A run's colour, of its curve, point, bar or chip: black, the full cache's, becomes ink, a policy's its colour for
/// dark ground (analysis/policy_color.h), and of others a pale hue, as runs of a second trace have it, stays.
ImVec4 line_on_ground(analysis::Rgb color, const Theme& theme);

/// The map on this ground: on either the larger value stands out more, and around zero the ground's own lightness.
analysis::ColorMap map_on_ground(analysis::ColorMap on_paper, const Theme& theme);

}  // namespace kvscope::gui
