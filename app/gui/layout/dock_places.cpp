#include "app/gui/layout/dock_places.h"

#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <climits>

namespace kvscope::gui {
namespace {

constexpr float most_share = 0.42f;  // largest share that a place may take for large text

void describe_node(const ImGuiDockNode* node, std::string& text) {
    if (!node) return;
    if (node->IsSplitNode()) {
        const ImVec2 size = node->ChildNodes[0]->SizeRef;
        text += fmt::format("{}{:.0f}(", node->SplitAxis == ImGuiAxis_X ? 'x' : 'y',
                            node->SplitAxis == ImGuiAxis_X ? size.x : size.y);
        for (const ImGuiDockNode* child : node->ChildNodes) describe_node(child, text);
        text += ')';
    } else if (node->TabBar) {
        for (const ImGuiTabItem& tab : node->TabBar->Tabs) text += fmt::format("{:x} ", tab.ID);
    } else {
        for (const ImGuiWindow* window : node->Windows) text += fmt::format("{:x} ", window->TabId);
    }
    text += ';';
}

void sort_tabs(ImGuiDockNode* node, const std::map<ImGuiID, int>& order) {
    if (!node) return;
    for (ImGuiDockNode* child : node->ChildNodes) sort_tabs(child, order);
    if (!node->TabBar) return;
    const auto place_of = [&](const ImGuiTabItem& tab) {
        const auto found = tab.Window ? order.find(tab.Window->ID) : order.end();
        return found == order.end() ? INT_MAX : found->second;
    };
    std::ranges::stable_sort(node->TabBar->Tabs,
                             [&](const auto& a, const auto& b) { return place_of(a) < place_of(b); });
}

}  // namespace

std::map<std::string, ImGuiID> split_dock_space(ImGuiID dock_space, const std::vector<Cut>& cuts) {
    ImGui::DockBuilderRemoveNode(dock_space);
    ImGui::DockBuilderAddNode(dock_space, ImGuiDockNodeFlags_DockSpace);
    ImGui::DockBuilderSetNodeSize(dock_space, ImGui::GetMainViewport()->WorkSize);
    std::map<std::string, ImGuiID> places{{"all", dock_space}};
    std::map<std::string, std::string> left_out;  // from a place that is left out to the place that receives its views
    for (const Cut& cut : cuts) {
        if (const auto without = left_out.find(cut.from); without != left_out.end()) {
            left_out[cut.to] = without->second;
            continue;
        }
        ImGuiID rest = 0;
        const ImVec2 size = ImGui::DockBuilderGetNode(places.at(cut.from))->Size;
        const bool is_across = cut.side == ImGuiDir_Left || cut.side == ImGuiDir_Right;
        const float least = cut.least * ImGui::GetFontSize() / std::max(is_across ? size.x : size.y, 1.0f);
        const float share = std::max(cut.share, least);
        if (share > std::max(cut.share, most_share)) {  // too little space, so the place's views become tabs
            left_out[cut.to] = cut.from;
            continue;
        }
        places[cut.to] = ImGui::DockBuilderSplitNode(places.at(cut.from), cut.side, share, nullptr, &rest);
        places[cut.from] = rest;
    }
    for (const auto& [name, has_its_views] : left_out)
        places[name] = places.at(has_its_views);  // later cuts may have moved the receiving place
    return places;
}

void sort_tabs(ImGuiID dock_space, const std::map<ImGuiID, int>& order) {
    sort_tabs(ImGui::DockBuilderGetNode(dock_space), order);
}

std::string stamp_of_dock_places(ImGuiID dock_space) {
    std::string text;
    describe_node(ImGui::DockBuilderGetNode(dock_space), text);
    return text;
}

}  // namespace kvscope::gui
