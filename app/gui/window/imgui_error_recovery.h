#pragma once

#include <imgui.h>
#include <imgui_internal.h>

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

}  // namespace kvscope::gui
