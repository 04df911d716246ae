#pragma once

#include <functional>
#include <string>

#include "app/gui/layout/open_views.h"
#include "app/gui/layout/undo_history.h"
#include "app/gui/layout/view_picker.h"
#include "app/gui/layout/view_picture.h"
#include "app/gui/saved/autosave.h"
#include "app/gui/saved/current_workspace.h"
#include "app/gui/saved/file_opener.h"
#include "app/gui/saved/recent_files.h"
#include "app/gui/saved/saved_layouts.h"
#include "app/gui/session/engine_session.h"
#include "app/gui/session/session.h"
#include "app/gui/shell/help_popups.h"
#include "app/gui/view/action_registry.h"
#include "app/gui/view/file_dialog.h"
#include "app/gui/view/rename_run_dialog.h"
#include "app/gui/window/appearance.h"
#include "app/gui/window/notices.h"

namespace kvscope::gui {

inline constexpr ImGuiKeyChord quit_key = ImGuiMod_Ctrl | ImGuiKey_Q;

struct ActionTargets {
    Actions& actions;
    Session& session;
    EngineSession* engine;  ///< nullptr in a build without the engine
    Settings& settings;
    Appearance& appearance;
    OpenViews& views;
    ViewPicker& picker;
    ViewPicture& picture;
    UndoHistory& undo;
    Autosave& autosave;
    CurrentWorkspace& workspace;
    FileOpener& opener;
    FileDialog& dialog;
    HelpPopups& help;
    RenameDialog& rename;
    SavedLayouts& layouts;
    Notices& notices;
    std::function<void()> quit;
};

class MenuActions {
 public:
    MenuActions(Actions& actions, std::string menu) : actions_(actions), menu_(std::move(menu)) {}

    /// Adds an action. A `key` of 0 means no key. Without `enabled`, the action is always enabled.
    void add(std::string name, ImGuiKeyChord key, std::function<void()> run, std::function<bool()> enabled = {},
             bool separator_before = false);

 private:
    Actions& actions_;
    std::string menu_;
};

[[nodiscard]] std::function<bool()> has_trace(const Session& session);

// Each function adds one group of actions. The order of calls is the order in the palette and in the help.
void add_file_actions(const ActionTargets& on);
void add_edit_actions(const ActionTargets& on);
void add_view_actions(const ActionTargets& on);
void add_layout_actions(const ActionTargets& on);
void add_help_actions(const ActionTargets& on);
[[nodiscard]] Action make_apply_layout_action(SavedLayouts& layouts, const std::string& name);
void add_run_actions(const ActionTargets& on);
void add_command_palette_actions(const ActionTargets& on);

void draw_menu_bar(Actions& actions, FileOpener& opener, SavedLayouts& layouts, RecentFiles& recent,
                   const Theme& theme);

}  // namespace kvscope::gui
