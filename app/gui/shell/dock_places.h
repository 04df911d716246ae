#pragma once

#include <imgui.h>

#include <map>
#include <string>
#include <vector>

#include "app/gui/shell/layouts.h"

namespace kvscope::gui {

/// Splits the dock space into named places. Skips cuts for which there is not enough space. The caller docks the views
/// and then calls ImGui::DockBuilderFinish.
/// @returns the dock node of each name; "all" is the remaining central node
std::map<std::string, ImGuiID> cut_into_places(ImGuiID dock_space, const std::vector<Cut>& cuts);

/// Returns a text that changes when a splitter or the order of tabs changes.
std::string describe_places(ImGuiID dock_space);

/// Sorts the tabs in every place. Windows that are not in `order` come last.
/// @param order position by ImGuiWindow::ID
void sort_tabs(ImGuiID dock_space, const std::map<ImGuiID, int>& order);

}  // namespace kvscope::gui
