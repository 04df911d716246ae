#include "app/gui/shell/place_sizes.h"

#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace kvscope::gui {
namespace {

constexpr std::array<float, 2> least_ems = {13, 8};  // of a side, across and down

bool has_middle(const ImGuiDockNode* node) {
    if (!node) return false;
    return node->IsCentralNode() || has_middle(node->ChildNodes[0]) || has_middle(node->ChildNodes[1]);
}

}  // namespace

std::vector<PlaceSizes::Side> PlaceSizes::sides_of(ImGuiID dock_space) {
    std::vector<Side> sides;
    const ImGuiDockNode* node = ImGui::DockBuilderGetNode(dock_space);
    while (node && node->IsSplitNode()) {
        const bool is_first = has_middle(node->ChildNodes[0]);
        if (!is_first && !has_middle(node->ChildNodes[1])) break;
        const ImGuiDockNode* side = node->ChildNodes[is_first ? 1 : 0];
        const auto axis = static_cast<int>(node->SplitAxis);
        if (side) sides.push_back({side->ID, axis, side->SizeRef[static_cast<ImGuiAxis>(axis)]});
        node = node->ChildNodes[is_first ? 0 : 1];
    }
    return sides;
}

void PlaceSizes::fit(ImGuiID dock_space, ImVec2 size) {
    const ImGuiDockNode* root = ImGui::DockBuilderGetNode(dock_space);
    if (!root || root->Size.x <= 0 || root->Size.y <= 0) return;
    const std::vector<Side> now = sides_of(dock_space);
    if (now != set_) {
        wanted_ = now;
        wanted_at_ = root->Size;
    }
    set_ = now;
    if (size.x == root->Size.x && size.y == root->Size.y) return;
    std::array<float, 2> lacks = {}, spare = {};
    const auto least = [&](const Side& side) {
        return std::min(side.size, least_ems[static_cast<size_t>(side.axis)] * ImGui::GetFontSize());
    };
    for (const Side& side : wanted_) spare[static_cast<size_t>(side.axis)] += side.size - least(side);
    for (const int axis : {0, 1}) {
        const auto a = static_cast<ImGuiAxis>(axis);
        lacks[static_cast<size_t>(axis)] = std::max(wanted_at_[a] - size[a], 0.0f);
    }
    for (const Side& side : wanted_) {
        ImGuiDockNode* node = ImGui::DockBuilderGetNode(side.node);
        if (!node) continue;
        const auto axis = static_cast<size_t>(side.axis);
        const float share = spare[axis] > 0 ? std::min(lacks[axis] / spare[axis], 1.0f) : 0;
        node->SizeRef[static_cast<ImGuiAxis>(side.axis)] = std::round(side.size - share * (side.size - least(side)));
    }
    set_ = sides_of(dock_space);
}

}  // namespace kvscope::gui
