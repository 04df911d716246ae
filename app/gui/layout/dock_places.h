#pragma once

#include <imgui.h>

#include <map>
#include <string>
#include <vector>

#include "app/gui/layout/layouts.h"

namespace kvscope::gui {

/// Splits the dock space into named places and returns their nodes; "all" is the remaining central node. Skips cuts for
/// which there is not enough space. The caller must dock the views and then call ImGui::DockBuilderFinish.
[[nodiscard]] std::map<std::string, ImGuiID> split_dock_space(ImGuiID dock_space, const std::vector<Cut>& cuts);

/// Returns a text that changes whenever a splitter or the order of tabs changes.
[[nodiscard]] std::string stamp_of_dock_places(ImGuiID dock_space);

/// Sorts the tabs of all places. `order` maps ImGuiWindow::ID to a position. Windows without a position come last.
void sort_tabs(ImGuiID dock_space, const std::map<ImGuiID, int>& order);

}  // namespace kvscope::gui
