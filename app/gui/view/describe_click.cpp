#include "app/gui/view/describe_click.h"

#include <imgui.h>
#include <imgui_internal.h>

#include <string_view>

namespace kvscope::gui {
namespace {

std::string name_in(std::string_view label) {
    const size_t id = label.find("##");
    if (id != 0) return std::string(label.substr(0, id));
    const size_t name = label.find_first_not_of('#');
    return std::string(label.substr(name == std::string_view::npos ? 0 : name));
}

std::string item_name() {
    const ImGuiDebugItemPathQuery& query = GImGui->DebugItemPathQuery;
    if (!query.Complete || query.Results.empty()) return {};
    const ImGuiStackLevelInfo& item = query.Results.back();
    if (!item.QuerySuccess || item.DescOffset < 0 || item.DataType != ImGuiDataType_String) return {};
    return name_in(query.ResultsDescBuf.Buf.Data + item.DescOffset);
}

}  // namespace

std::string describe_click() {
    // Asks Dear ImGui for the name of the hovered item in the next frames, like Dear ImGui's ID stack tool.
    GImGui->DebugIDStackTool.LastActiveFrame = GImGui->FrameCount;
    bool is_click = false;
    for (const auto button : {ImGuiMouseButton_Left, ImGuiMouseButton_Right, ImGuiMouseButton_Middle})
        is_click = is_click || ImGui::IsMouseClicked(button);
    if (!is_click) return {};
    const ImGuiWindow* window = GImGui->HoveredWindow;
    std::string text = "click";
    if (window) {
        const ImGuiWindow* root = window->RootWindowPopupTree ? window->RootWindowPopupTree : window->RootWindow;
        text += " in " + name_in(root->Name);
    }
    if (const std::string item = item_name(); !item.empty()) text += ": " + item;
    return text;
}

}  // namespace kvscope::gui
