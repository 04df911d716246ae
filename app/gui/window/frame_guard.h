#pragma once

#include <imgui.h>
#include <imgui_internal.h>

#include <functional>
#include <set>
#include <string>

#include "app/gui/window/notices.h"

namespace kvscope::gui {

/// Records which windows, tables, ids, colors, clips and plots are open in Dear ImGui and ImPlot, so that they can be
/// restored after an exception.
class DrawingStacks {
 public:
    DrawingStacks();
    /// Closes everything that was opened since construction, in the same frame and window. Drawn content stays.
    void restore() const;

 private:
    ImGuiErrorRecoveryState sizes_;
    ImDrawList* list_;
    int n_clips_;
    int n_textures_;
};

/// Draws menus, dialogs and other parts that are not views. Reports an exception once and draws the other parts.
class FrameGuard {
 public:
    explicit FrameGuard(Notices& notices) : notices_(notices) {}

    /// Calls `draw`. A notice about an exception names `part`, e.g. "the menus".
    void attempt(const char* part, const std::function<void()>& draw);

 private:
    Notices& notices_;
    std::set<std::string> told_;
};

}  // namespace kvscope::gui
