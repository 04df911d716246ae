#include <imgui.h>

#include "app/gui/shell/menu_actions.h"
#include "app/gui/shell/menu_file_dialogs.h"

namespace kvscope::gui {
namespace {

void reload_traces(Session& session, Notices& notices) {
    for (const auto& document : session.documents()) {
        try {
            session.open(document->path());
        } catch (const std::exception& error) {
            notices.add(error.what(), true);
        }
    }
}

}  // namespace

void add_file_actions(const ActionTargets& on) {
    MenuActions menu(on.actions, "File");
    Session& session = on.session;
    Notices& notices = on.notices;
    FileDialog& dialog = on.dialog;
    const auto open = [&dialog, &opener = on.opener] { ask_for_trace(dialog, opener); };
    menu.add("Open a trace…", ImGuiMod_Ctrl | ImGuiKey_O,
             [&dialog, &opener = on.opener, &session, &autosave = on.autosave] {
                 ask_for_replacement_trace(dialog, opener, session, autosave);
             });
    menu.add("Open another trace…", ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_O, open, has_trace(session));
    menu.add(
        "Reload", ImGuiKey_F5, [&session, &notices] { reload_traces(session, notices); }, has_trace(session));
    menu.add(
        "Close this trace", ImGuiMod_Ctrl | ImGuiKey_W,
        [&session, &notices, &autosave = on.autosave, &views = on.views] {
            if (!autosave.may_leave()) return;
            close_trace(*session.focus(), session, views, notices);
        },
        has_trace(session));
    menu.add(
        "Save a workspace…", ImGuiMod_Ctrl | ImGuiKey_S,
        [&session, &notices, &dialog, &workspace = on.workspace, &settings = on.settings] {
            ask_where_to_save_workspace(dialog, workspace, session, notices, settings);
        },
        has_trace(session), true);
    menu.add(
        "Export this view…", ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_E,
        [&session, &notices, &dialog, &views = on.views] {
            ask_where_to_export(dialog, views.focused(), session, notices);
        },
        has_trace(session), true);
    menu.add(
        "Start page", 0, [&views = on.views] { views.show_start(); },
        [&session] { return session.documents().empty(); }, true);
    menu.add("Quit", quit_key, on.quit, {});
}

}  // namespace kvscope::gui
