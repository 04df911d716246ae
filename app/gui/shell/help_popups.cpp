#include "app/gui/shell/help_popups.h"

#include <imgui.h>
#include <implot.h>

#include "app/gui/layout/open_view.h"
#include "app/gui/view/action_registry.h"
#include "app/gui/window/window.h"
#include "app/program/version.h"

namespace kvscope::gui {

void HelpPopups::draw_keys(const OpenView* view, const Actions& actions) {
    if (keys_wanted_) ImGui::OpenPopup("Mouse and keys");
    keys_wanted_ = false;
    ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Appearing, {0.5f, 0.5f});
    if (!ImGui::BeginPopup("Mouse and keys")) return;
    const auto table = [&](const char* name, const std::vector<std::pair<std::string, std::string>>& lines) {
        ImGui::SeparatorText(name);
        if (!ImGui::BeginTable(name, 2)) return;
        for (const auto& [does, what] : lines) {
            ImGui::TableNextColumn();
            ImGui::TextUnformatted(does.c_str());
            ImGui::TableNextColumn();
            ImGui::TextDisabled("%s", what.c_str());
        }
        ImGui::EndTable();
    };
    if (view) {
        ImGui::TextDisabled("%s", view->kind->summary.c_str());
        if (const auto lines = view->view->help(); !lines.empty()) table(view->kind->title.c_str(), lines);
    }
    std::vector<std::pair<std::string, std::string>> keys;
    for (const Action& action : actions.all()) {
        const std::pair<std::string, std::string> line = action.row_keys.empty()
                                                             ? std::pair(shortcut_text(action), action.name)
                                                             : std::pair(action.row_keys, action.row_name);
        if (!line.first.empty() && (keys.empty() || keys.back() != line)) keys.push_back(line);
    }
    table("Everywhere", keys);
    ImGui::EndPopup();
}

void HelpPopups::draw_about(const Window& window) {
    if (about_wanted_) ImGui::OpenPopup("About kvscope");
    about_wanted_ = false;
    ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Appearing, {0.5f, 0.5f});
    if (!ImGui::BeginPopup("About kvscope")) return;
    ImGui::PushFont(window.fonts.bold, 0);
    ImGui::Text("kvscope %s", program::version());
    ImGui::PopFont();
    ImGui::TextUnformatted("Shows what KV-cache compression does inside a language model.");
    ImGui::TextDisabled("Dear ImGui %s, ImPlot %s, %s", IMGUI_VERSION, IMPLOT_VERSION, window.renderer().c_str());
    ImGui::TextDisabled("Apache License 2.0");
    ImGui::EndPopup();
}

}  // namespace kvscope::gui
