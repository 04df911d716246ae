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

}  // namespace kvscope::gui
