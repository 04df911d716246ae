#pragma once

#include <imgui.h>

#include "analysis/drawing/color_map.h"

namespace kvscope::gui {

enum class Brightness { dark, light };

struct Theme {
    Brightness brightness = Brightness::dark;
    ImVec4 ground;     ///< background of maps; color of dropped entries
    ImVec4 panel;      ///< background of views
    ImVec4 ink;        ///< text
    ImVec4 ink_quiet;  ///< units and help
    ImVec4 line;       ///< separators and grid
    ImVec4 accent;     ///< selection and active items
    ImVec4 hover;      ///< hovered items
    ImVec4 mark;       ///< marked text
    ImVec4 differs;    ///< parts of an answer that differ from the reference
    ImVec4 pin;        ///< pinned tokens and notes
    ImVec4 warning;    ///< orange; only runs may use a similar color
    ImVec4 error;
};

struct Fonts {
    ImFont* text = nullptr;
    ImFont* bold = nullptr;
    ImFont* mono = nullptr;  ///< for tokens and numbers
};

/// Sets the style of Dear ImGui and ImPlot. @param scale 1 for text of 16 pixels
[[nodiscard]] Theme apply_theme(Brightness brightness, float scale);

/// Loads Inter, JetBrains Mono or substitutes, and a CJK font of the system. Call once, before the first frame.
[[nodiscard]] Fonts load_fonts();

[[nodiscard]] ImU32 packed(const ImVec4& color, float alpha = 1);
[[nodiscard]] ImU32 packed(analysis::Rgb color, float alpha = 1);

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
