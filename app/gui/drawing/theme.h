#pragma once

#include <imgui.h>

#include "analysis/color_map.h"

namespace kvscope::gui {

enum class Brightness { dark, light };

/// Colours with a meaning, for what the widgets' own style does not cover.
struct Theme {
    Brightness brightness = Brightness::dark;
    ImVec4 ground;     ///< behind maps: what is not kept
    ImVec4 panel;      ///< windows
    ImVec4 ink;        ///< text
    ImVec4 ink_quiet;  ///< units, help
    ImVec4 line;       ///< separators, grid
    ImVec4 accent;     ///< the one accent: selection, active things
    ImVec4 hover;      ///< under the mouse
    ImVec4 mark;       ///< the marked span
    ImVec4 differs;    ///< of an answer, what its reference has not
    ImVec4 pin;        ///< what a person has pinned or noted
    ImVec4 warning;    ///< nothing else is orange but a run whose policy is
    ImVec4 error;
};

struct Fonts {
    ImFont* text = nullptr;
    ImFont* bold = nullptr;
    ImFont* mono = nullptr;  ///< tokens and numbers
};

/// Sets the style of Dear ImGui and ImPlot. @param scale 1: 16-pixel text
Theme apply_theme(Brightness brightness, float scale);

/// Inter and JetBrains Mono as the system has them, with the system's fonts for Chinese, Japanese and Korean behind
/// them; other faces where those are missing. Once, before the first frame.
Fonts load_fonts();

ImU32 packed(const ImVec4& color, float alpha = 1);
ImU32 packed(analysis::Rgb color, float alpha = 1);

}  // namespace kvscope::gui
