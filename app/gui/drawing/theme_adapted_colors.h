#pragma once

#include <imgui.h>

#include "analysis/drawing/color_map.h"
#include "app/gui/drawing/theme.h"

namespace kvscope::gui {

/// Returns an opaque mix of two colors. @param share share of b
[[nodiscard]] ImVec4 mixed(ImVec4 a, ImVec4 b, float share);

/// Adapts the color of an area to the background: in the dark theme, dark colors become light, near-white ones dark.
[[nodiscard]] ImVec4 adapt_area_color_to_theme(analysis::Rgb color, const Theme& theme);

/// Adapts the color of a run's mark to the background. In the dark theme, black (`full`) becomes the text color,
/// policies have their own dark variants, and pale colors are unchanged.
[[nodiscard]] ImVec4 adapt_line_color_to_theme(const analysis::MarkColor& color, const Theme& theme);

/// Adapts a color map to the background, so that large values stand out and differences of zero do not.
[[nodiscard]] analysis::ColorMap adapt_color_map_to_theme(analysis::ColorMap on_paper, const Theme& theme);

}  // namespace kvscope::gui
