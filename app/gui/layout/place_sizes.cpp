#include "app/gui/layout/place_sizes.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace kvscope::gui {
namespace {

constexpr std::array<float, 2> least_ems = {13, 8};  // width and height of a side place

bool has_middle(const ImGuiDockNode* node) {
    if (!node) return false;
    return node->IsCentralNode() || has_middle(node->ChildNodes[0]) || has_middle(node->ChildNodes[1]);
}

int n_places(const ImGuiDockNode* node, ImGuiAxis axis) {
    if (!node || !node->IsSplitNode()) return 1;
    const int first = n_places(node->ChildNodes[0], axis), second = n_places(node->ChildNodes[1], axis);
    return node->SplitAxis == axis ? first + second : std::max(first, second);
}

}  // namespace

float& PlaceSizes::Side::size() const { return node->SizeRef[axis]; }

std::vector<PlaceSizes::Side> PlaceSizes::sides_of(ImGuiID dock_space) {
    std::vector<Side> sides;
    const ImGuiDockNode* node = ImGui::DockBuilderGetNode(dock_space);
    while (node && node->IsSplitNode()) {
        const bool is_first = has_middle(node->ChildNodes[0]);
        if (!is_first && !has_middle(node->ChildNodes[1])) break;
        if (ImGuiDockNode* side = node->ChildNodes[is_first ? 1 : 0]) sides.push_back({side, node->SplitAxis});
        node = node->ChildNodes[is_first ? 0 : 1];
    }
    return sides;
}

PlaceSizes::Wanted& PlaceSizes::wanted(const Side& side, ImVec2 whole) {
    Wanted& known = wanted_[side.node->ID];
    if (known.set != side.size()) known = {side.size(), whole[side.axis], side.size()};
    return known;
}

void PlaceSizes::fit(ImGuiID dock_space, ImVec2 size) {
    const ImGuiDockNode* root = ImGui::DockBuilderGetNode(dock_space);
    if (!root || root->Size.x <= 0 || root->Size.y <= 0) return;
    const std::vector<Side> sides = sides_of(dock_space);
    std::array<float, 2> spare = {};
    const auto least = [&](const Side& side, const Wanted& of) {
        const auto n = static_cast<float>(n_places(side.node, side.axis));
        return std::min(of.size, n * least_ems[static_cast<size_t>(side.axis)] * ImGui::GetFontSize());
    };
    for (const Side& side : sides) {
        const Wanted& of = wanted(side, root->Size);
        spare[static_cast<size_t>(side.axis)] += of.size - least(side, of);
    }
    if (size.x == root->Size.x && size.y == root->Size.y) return;
    for (const Side& side : sides) {
        Wanted& of = wanted(side, root->Size);
        const float lacks = std::max(of.at - size[side.axis], 0.0f);
        const float all = spare[static_cast<size_t>(side.axis)];
        const float share = all > 0 ? std::min(lacks / all, 1.0f) : 0;
        side.size() = of.set = std::round(of.size - share * (of.size - least(side, of)));
    }
}

}  // namespace kvscope::gui
