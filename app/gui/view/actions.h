#pragma once

#include <imgui.h>

#include <functional>
#include <string>
#include <vector>

namespace kvscope::gui {

/// A command for menus, keys and the command palette.
struct Action {
    std::string name;  ///< e.g. "Open trace…"
    std::string menu;  ///< e.g. "File"; empty: only palette and key
    ImGuiKeyChord key = 0;
    std::function<void()> run;
    std::function<bool()> enabled;  ///< empty: always enabled
    std::function<bool()> checked;  ///< empty: not a checkable item
    bool separator_before = false;
    /// Combines similar actions in one line of the help: their keys and their common description. The palette omits
    /// these actions.
    std::string row_keys = {};
    std::string row_name = {};
};

class Actions {
 public:
    void add(Action action);
    /// Runs the action whose keys were pressed. Call once per frame before drawing. Keys that type or edit belong to a
    /// text field that is being edited. `is_view_focused` allows keys that type a character.
    void handle_keys(bool is_view_focused);
    /// Whether character keys run actions in this frame: a view has the keyboard, no text is edited, and no text was
    /// typed within the last second.
    bool takes_single_keys() const { return takes_single_keys_; }
    void draw_menu(const char* menu);

    void open_palette() { palette_wanted_ = true; }
    /// Draws the search field and the matching actions, best match first.
    void draw_palette();
    /// Called before the palette opens. Adds actions that depend on the open views and files; they last until it
    /// closes.
    std::function<void(std::vector<Action>&)> add_to_palette;

    /// Called when the search text changes. Adds actions before or after all others.
    std::function<void(const std::string& search, std::vector<Action>& before, std::vector<Action>& behind)>
        add_for_search;

    const std::vector<Action>& all() const { return actions_; }
    /// Name of the last action that was run, for the crash log.
    const std::string& last() const { return last_; }
    void start(const Action& action);
    std::function<void(const std::string& name)> before_start;
    /// Called with the message of an exception from an action; empty: the exception propagates.
    std::function<void(const std::string& name, const std::string& message)> on_failure;

 private:
    std::vector<Action> actions_;
    std::vector<Action> extra_;
    std::vector<Action> before_, behind_;  ///< results of add_for_search
    std::string last_;
    std::string search_;
    int chosen_ = 0;
    bool palette_wanted_ = false;
    bool takes_single_keys_ = false;
    double typed_at_ = -1e9;  ///< time when text was last typed
};

/// Whether these keys were pressed, whichever item has the keyboard.
bool is_pressed(ImGuiKeyChord key);

/// Key that shows or hides the run at this position (from 1) in the list of runs; 0: none. Keys are 1 to 9, with Shift
/// 10 to 18, with Ctrl 19 to 27.
ImGuiKeyChord run_key(int number);
constexpr int n_run_keys = 27;

std::string key_text(ImGuiKeyChord key);
/// Names the keys of an action, e.g. "Ctrl+Shift+P".
std::string key_text(const Action& action);

}  // namespace kvscope::gui
