#pragma once

#include <imgui.h>

#include <map>
#include <string>
#include <vector>

#include "app/gui/shell/layouts.h"

namespace kvscope::gui {

/// Splits the dock space into named places, without cuts for which there is not enough space. The caller then docks the
/// views and calls ImGui::DockBuilderFinish. Returns the dock nodes; "all" is the remaining central node.
std::map<std::string, ImGuiID> cut_into_places(ImGuiID dock_space, const std::vector<Cut>& cuts);

/// Returns a text that changes when a splitter or the order of tabs changes.
std::string describe_places(ImGuiID dock_space);

/// Sorts the tabs of all places by `order`, with ImGuiWindow::ID as key. Other windows come last.
void sort_tabs(ImGuiID dock_space, const std::map<ImGuiID, int>& order);

}  // namespace kvscope::gui
