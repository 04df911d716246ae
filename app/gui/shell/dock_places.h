#pragma once

#include <imgui.h>

#include <map>
#include <string>
#include <vector>

#include "app/gui/shell/layouts.h"

namespace kvscope::gui {

/// Cuts the dock space anew, and leaves out cuts that it has no room for. Ends with ImGui::DockBuilderFinish, when the
/// views are in their places.
/// @returns the dock node of each name; "all" is what the cuts leave of the whole
std::map<std::string, ImGuiID> cut_into_places(ImGuiID dock_space, const std::vector<Cut>& cuts);

/// Splitters and the order of tabs of a dock space, as a text that changes with them.
std::string describe_places(ImGuiID dock_space);

/// Puts the tabs of all places into this order, by window; those of other windows stay behind.
/// @param order by ImGuiWindow::ID
void sort_tabs(ImGuiID dock_space, const std::map<ImGuiID, int>& order);

}  // namespace kvscope::gui
