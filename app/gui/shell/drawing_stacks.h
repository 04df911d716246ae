#pragma once

#include <imgui.h>
#include <imgui_internal.h>

namespace kvscope::gui {

/// What a view has open in Dear ImGui and ImPlot while it draws: windows, tables, ids, colours, clips, a plot. Made
/// before a view or another part of a frame draws, to go back to where it throws in the middle.
class DrawingStacks {
 public:
    DrawingStacks();
    /// Closes what was opened since, in this frame and in the same window. What was drawn until then stays.
    void restore() const;

 private:
    ImGuiErrorRecoveryState sizes_;
    ImDrawList* list_;
    int n_clips_;
    int n_textures_;
};

}  // namespace kvscope::gui
