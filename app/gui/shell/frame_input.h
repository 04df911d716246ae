#pragma once

namespace kvscope::gui {

/// Whether something was clicked, typed or turned in this frame of Dear ImGui.
bool has_input();

}  // namespace kvscope::gui
