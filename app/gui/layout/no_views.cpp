#include "app/gui/layout/no_views.h"

#include <imgui.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>

namespace kvscope::gui {
namespace {

struct Suggestion {
    std::string link;
    std::string where;  ///< menu path or key
    std::function<void()> take;
};

void start_of_menu(Actions& actions, const std::string& menu, const std::string& name) {
    const auto& all = actions.all();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const Action& each) { return each.menu == menu && each.name == name; });
    if (found != all.end()) actions.start(*found);
}

}  // namespace

void draw_hint_for_no_views(Actions& actions, const Theme& theme) {
    constexpr const char* title = "All views are closed.";
    const std::array<Suggestion, 4> suggestions{{
        {"Default layout", "Layout > Explore", [&] { start_of_menu(actions, "Layout", "Explore"); }},
        {"A single view", "View > Open a view…", [&] { start_of_menu(actions, "View", "Open a view…"); }},
        {"Last closed view", "Ctrl+Z", [&] { start_of_menu(actions, "Edit", "Undo"); }},
        {"Commands", "Ctrl+K", [&] { actions.open_palette(); }},
    }};
    const float em = ImGui::GetFontSize();
    ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Always, {0.5f, 0.5f});
    ImGui::Begin("No views", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoDocking |
                     ImGuiWindowFlags_NoBackground | ImGuiWindowFlags_AlwaysAutoResize);
    ImGui::PushStyleColor(ImGuiCol_Text, theme.ink_quiet);
    ImGui::TextUnformatted(title);
    ImGui::Dummy({0, 0.3f * em});
    for (const Suggestion& suggestion : suggestions) {
        if (ImGui::TextLink(suggestion.link.c_str())) suggestion.take();
        ImGui::SameLine(11 * em);
        ImGui::TextUnformatted(suggestion.where.c_str());
    }
    ImGui::PopStyleColor();
    ImGui::End();
}

}  // namespace kvscope::gui
