#include <imgui.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "app/gui/figure/export_dialog.h"
#include "app/gui/session/renaming.h"
#include "app/gui/shell/menu_actions.h"
#include "app/gui/view/copy_command.h"

namespace kvscope::gui {
namespace {

void add_history_actions(MenuActions& menu, const ActionTargets& on) {
    UndoHistory& undo = on.undo;
    Session& session = on.session;
    const auto tell = [&notices = on.notices](const char* way, const std::string& what) {
        if (!what.empty()) notices.replace("undo", std::string(way) + ": " + what);
    };
    menu.add(
        "Undo", ImGuiMod_Ctrl | ImGuiKey_Z, [&undo, tell] { tell("Undone", undo.undo()); },
        [&undo] { return undo.can_undo(); });
    menu.add(
        "Redo", ImGuiMod_Ctrl | ImGuiKey_Y, [&undo, tell] { tell("Redone", undo.redo()); },
        [&undo] { return undo.can_redo(); });
    menu.add(
        "Previous selection", ImGuiMod_Alt | ImGuiKey_LeftArrow, [&session] { session.go_back(); },
        [&session] { return session.selection.can_go_back(); }, true);
    menu.add(
        "Next selection", ImGuiMod_Alt | ImGuiKey_RightArrow, [&session] { session.go_forward(); },
        [&session] { return session.selection.can_go_forward(); });
    menu.add("Stop alternating and clear selection", ImGuiKey_Escape, [&session] {
        if (!std::exchange(session.pair.flicker, std::nullopt)) session.selection.deselect();
    });
}

void copy_figure(const OpenView* open, Session& session, Notices& notices) {
    const auto request = open ? open->view->figure(session) : std::nullopt;
    try {
        if (!request)
            throw std::runtime_error("this view shows no figure. Click another view, or copy this view as screenshot");
        ExportDialog::copy_image(session, *request, notices.function());
    } catch (const std::exception& error) {
        notices.add(error.what(), true);
    }
}

void add_copy_actions(MenuActions& menu, const ActionTargets& on) {
    Session& session = on.session;
    menu.add(
        "Copy this figure as image", 0,
        [&session, &views = on.views, &notices = on.notices] { copy_figure(views.focused(), session, notices); },
        has_trace(session), true);
    menu.add("Copy this view as screenshot", ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_C,
             [&views = on.views, &picture = on.picture] {
                 if (const OpenView* open = views.focused()) picture.ask_for(*open);
             });
    menu.add(
        "Copy the command that reproduces this run", 0,
        [&session, &notices = on.notices] { copy_run_command(session, session.cursor().run, notices.function()); },
        [&session] { return session.exists(session.cursor().run); });
    menu.add(
        "Rename the selected run…", 0, [&session, &rename = on.rename] { rename.ask(session, session.cursor().run); },
        [&session] { return can_rename_run(session, session.cursor().run); });
}

void select_next_layer(Session& session, int by) {
    const Document* focus = session.focus();
    if (!focus || !focus->reader()->has_model()) return;
    const int last = static_cast<int>(focus->reader()->model().n_layers) - 1;
    session.selection.select_layer(std::clamp(session.cursor().layer + by, 0, last));
}

void select_next_token(Session& session, int by) {
    const Document* focus = session.focus();
    if (!focus || focus->prompt >= focus->reader()->n_prompts()) return;
    const int64_t last = focus->reader()->prompt(focus->prompt).visible_tokens() - 1;
    session.selection.select_token(std::clamp<int64_t>(session.cursor().first_token + by, 0, last));
}

void add_move_actions(MenuActions& menu, Session& session) {
    menu.add(
        "Select previous layer", ImGuiKey_LeftBracket, [&session] { select_next_layer(session, -1); },
        has_trace(session), true);
    menu.add(
        "Select next layer", ImGuiKey_RightBracket, [&session] { select_next_layer(session, 1); }, has_trace(session));
    menu.add(
        "Select previous token", ImGuiKey_Comma, [&session] { select_next_token(session, -1); }, has_trace(session));
    menu.add(
        "Select next token", ImGuiKey_Period, [&session] { select_next_token(session, 1); }, has_trace(session));
}

}  // namespace

void add_edit_actions(const ActionTargets& on) {
    MenuActions menu(on.actions, "Edit");
    add_history_actions(menu, on);
    add_copy_actions(menu, on);
    add_move_actions(menu, on.session);
}

}  // namespace kvscope::gui
