#include "app/gui/shell/menu_actions.h"

#include <imgui.h>

#include <string_view>
#include <utility>

#include "app/gui/layout/layouts.h"
#include "app/gui/shell/menu_file_dialogs.h"
#include "app/gui/view/widgets.h"

namespace kvscope::gui {

void MenuActions::add(std::string name, ImGuiKeyChord key, std::function<void()> run, std::function<bool()> enabled,
                      bool separator_before) {
    actions_.add({std::move(name), menu_, key, std::move(run), std::move(enabled), {}, separator_before});
}

std::function<bool()> has_trace(const Session& session) {
    return [&session] { return !session.documents().empty(); };
}

Action make_apply_layout_action(SavedLayouts& layouts, const std::string& name) {
    return {name, "Layout", 0, [&layouts, name] { layouts.apply(name); }};
}

void add_layout_actions(const ActionTargets& on) {
    MenuActions menu(on.actions, "Layout");
    for (const Layout& layout : layouts())
        menu.add(layout.title, 0, [&views = on.views, &pair = on.session.pair, &layout] {
            views.apply_layout(layout.name);
            pair.alone = layout.of_pair;
        });
    menu.add(
        "Save this layout as…", 0, [&saved = on.layouts] { saved.ask_to_save(); }, {}, true);
    menu.add("Export this layout…", 0, [&saved = on.layouts] { saved.ask_to_export(); });
    menu.add("Import a layout…", 0, [&saved = on.layouts] { saved.ask_to_import(); });
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
    menu.add("Default text size", ImGuiMod_Ctrl | ImGuiKey_0,
             [&appearance = on.appearance] { appearance.set_scale(0); });
}

void add_help_actions(const ActionTargets& on) {
    MenuActions menu(on.actions, "Help");
    const auto open_palette = [&actions = on.actions] { actions.open_palette(); };
    menu.add("Commands…", ImGuiMod_Ctrl | ImGuiKey_K, open_palette);
    on.actions.add({"Commands", "", ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_P, open_palette});
    menu.add("Mouse and keys", ImGuiMod_Shift | ImGuiKey_Slash, [&help = on.help] { help.open_keys(); });
    menu.add("About kvscope", 0, [&help = on.help] { help.open_about(); });
}

void add_run_actions(const ActionTargets& on) {
    if (!on.engine) return;
    MenuActions menu(on.actions, "Run");
    EngineSession& engine = *on.engine;
    // If the Run view already has the keyboard, the command starts the run.
    menu.add("Run policies on a prompt…", ImGuiMod_Ctrl | ImGuiKey_R, [&views = on.views, &session = on.session] {
        const ViewKind* kind = find_view_kind("run");
        if (!kind) return;
        const bool is_there = views.focused() && views.focused()->kind == kind && views.is_maximised();
        if (session.documents().empty() && !is_there)
            views.show_alone(*kind);  // the other views have no data
        else
            views.start_or_show(*kind);
    });
    menu.add(
        "Run the demo", 0, [&engine] { engine.run_demo(); }, [&engine] { return !engine.status().busy(); });
    menu.add(
        "Continue the run", 0,
        [&engine, &session = on.session] {
            engine.stopped_run() ? engine.continue_stopped_run() : engine.go_on(session.focus()->path());
        },
        [&engine, &session = on.session] {
            const bool is_unfinished = session.focus() && session.focus()->is_unfinished();
            return (engine.stopped_run() || is_unfinished) && !engine.status().busy();
        });
    menu.add("Choose a model…", 0,
             [&dialog = on.dialog, &opener = on.opener, &views = on.views] { ask_for_model(dialog, opener, views); });
    menu.add(
        "Cancel", 0, [&engine] { engine.cancel(); }, [&engine] { return engine.status().busy(); });
}

namespace {

void draw_saved_layouts(Actions& actions, SavedLayouts& layouts) {
    const auto names = layouts.names();
    if (names.empty()) return;
    ImGui::SeparatorText("Saved");
    for (const auto& name : names)
        if (ImGui::MenuItem(name.c_str())) actions.start(make_apply_layout_action(layouts, name));
    if (!ImGui::BeginMenu("Remove")) return;
    for (const auto& name : names)
        if (ImGui::MenuItem((name + "…").c_str())) layouts.ask_to_remove(name);
    ImGui::EndMenu();
}

void draw_recent(FileOpener& opener, RecentFiles& recent) {
    recent.update(ImGui::GetTime());
    if (!ImGui::BeginMenu("Open recent", !recent.traces().empty())) return;
    const auto files = recent.traces();  // a copy, because opening a trace changes the list
    for (const RecentFile& file : files) {
        const bool is_gone = file.state == RecentFile::State::gone;
        const std::string contents = recent.contents_of(file);
        const std::string hint = is_gone ? file.folder() + ", not found" : contents.empty() ? file.folder() : contents;
        ImGui::PushID(file.path.c_str());
        if (ImGui::MenuItem(file.name().c_str(), hint.c_str(), false, !is_gone)) opener.open_trace(file.path);
        item_tooltip(file.path);
        ImGui::PopID();
    }
    ImGui::Separator();
    if (ImGui::MenuItem("Clear")) recent.clear_traces();
    ImGui::EndMenu();
}

}  // namespace

void draw_menu_bar(Actions& actions, FileOpener& opener, SavedLayouts& layouts, RecentFiles& recent,
                   const Theme& theme) {
    if (!ImGui::BeginMainMenuBar()) return;
    for (const char* menu : {"File", "Edit", "Run", "View", "Layout", "Help"}) {
        if (!ImGui::BeginMenu(menu)) continue;
        actions.draw_menu(menu);
        if (std::string_view(menu) == "Layout") draw_saved_layouts(actions, layouts);
        if (std::string_view(menu) == "File") draw_recent(opener, recent);
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
