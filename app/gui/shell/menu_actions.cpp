#include "app/gui/shell/menu_actions.h"

#include <imgui.h>

#include <string_view>
#include <utility>

#include "app/gui/shell/file_questions.h"
#include "app/gui/shell/layouts.h"

namespace kvscope::gui {

void MenuActions::add(std::string name, ImGuiKeyChord key, std::function<void()> run, std::function<bool()> enabled,
                      bool separator_before) {
    actions_.add({std::move(name), menu_, key, std::move(run), std::move(enabled), {}, separator_before});
}

std::function<bool()> has_trace(const Session& session) {
    return [&session] { return !session.documents().empty(); };
}

void add_layout_actions(const ActionTargets& on) {
    MenuActions menu(on.actions, "Layout");
    for (const Layout& layout : layouts())
        menu.add(layout.title, 0, [&views = on.views, &pair = on.session.pair, &layout] {
            views.apply_layout(layout.name);
            pair.alone = layout.of_pair;
        });
    on.actions.add({"Light theme",
                    "Layout",
                    0,
                    [&appearance = on.appearance, &settings = on.settings] { appearance.set_light(!settings.light); },
                    {},
                    [&settings = on.settings] { return settings.light; },
                    true});
    const auto scaled = [&appearance = on.appearance](float factor) {
        appearance.set_scale(ImGui::GetStyle().FontScaleMain * factor);
    };
    menu.add("Larger", ImGuiMod_Ctrl | ImGuiKey_Equal, [scaled] { scaled(1.1f); });
    menu.add("Smaller", ImGuiMod_Ctrl | ImGuiKey_Minus, [scaled] { scaled(1 / 1.1f); });
    menu.add("Usual size", ImGuiMod_Ctrl | ImGuiKey_0, [&appearance = on.appearance] { appearance.set_scale(0); });
}

void add_help_actions(const ActionTargets& on) {
    MenuActions menu(on.actions, "Help");
    const auto open_palette = [&actions = on.actions] { actions.open_palette(); };
    menu.add("Commands…", ImGuiMod_Ctrl | ImGuiKey_K, open_palette);
    on.actions.add({"Commands", "", ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_P, open_palette, {}, {}, false});
    menu.add("Mouse and keys", ImGuiMod_Shift | ImGuiKey_Slash, [&help = on.help] { help.open_keys(); });
    menu.add("About kvscope", 0, [&help = on.help] { help.open_about(); });
}

void add_run_actions(const ActionTargets& on) {
    if (!on.engine) return;
    MenuActions menu(on.actions, "Run");
    EngineSession& engine = *on.engine;
    // Pressed once more, in the view itself, it runs.
    menu.add("Policies on a prompt…", ImGuiMod_Ctrl | ImGuiKey_R, [&views = on.views] {
        if (const ViewKind* kind = find_view_kind("run")) views.start_or_show(*kind);
    });
    menu.add(
        "Run the demo", 0, [&engine] { engine.run_demo(); }, [&engine] { return !engine.status().busy(); });
    menu.add("Choose a model…", 0,
             [&dialog = on.dialog, &opener = on.opener, &views = on.views] { ask_for_model(dialog, opener, views); });
    menu.add(
        "Cancel", 0, [&engine] { engine.cancel(); }, [&engine] { return engine.status().busy(); });
}

void draw_menu_bar(Actions& actions, FileOpener& opener, const Settings& settings, const Theme& theme) {
    if (!ImGui::BeginMainMenuBar()) return;
    for (const char* menu : {"File", "Edit", "Run", "View", "Layout", "Help"}) {
        if (!ImGui::BeginMenu(menu)) continue;
        actions.draw_menu(menu);
        if (std::string_view(menu) == "File" && !settings.recent_traces.empty() && ImGui::BeginMenu("Recent traces")) {
            const auto recent = settings.recent_traces;
            for (const auto& path : recent) {
                if (ImGui::MenuItem(path.c_str())) opener.open_trace(path);
            }
            ImGui::EndMenu();
        }
        ImGui::EndMenu();
    }
    const char* hint = "Ctrl+K  commands";
    ImGui::SetCursorPosX(ImGui::GetWindowWidth() - ImGui::CalcTextSize(hint).x - 3 * ImGui::GetStyle().ItemSpacing.x);
    ImGui::PushStyleColor(ImGuiCol_Text, theme.ink_quiet);
    if (ImGui::MenuItem(hint)) actions.open_palette();
    ImGui::PopStyleColor();
    ImGui::EndMainMenuBar();
}

}  // namespace kvscope::gui
