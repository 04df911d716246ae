#pragma once

#include <imgui.h>

#include <functional>
#include <string>
#include <vector>

namespace kvscope::gui {

/// A command for menus, keys and the command palette.
struct Action {
    std::string name;  ///< name in menus and palette, e.g. "Open trace…"
    std::string menu;  ///< menu, e.g. "File"; empty if the action is only in the palette
    ImGuiKeyChord key = 0;
    std::function<void()> run = {};
    std::function<bool()> enabled = {};  ///< whether the action can run; empty if always
    std::function<bool()> checked = {};  ///< whether the menu item is checked; empty if the item has no check mark
    bool separator_before = false;
    /// The help shows similar actions in one line, with these keys and this text. The palette omits the actions.
    std::string row_keys = {};
    std::string row_name = {};
};

class Actions {
 public:
    void add(Action action);
    /// Runs the action whose keys were pressed. Call once per frame before drawing. While text is edited, keys that
    /// type or edit run no action. `is_view_focused` enables keys that type a character.
    void handle_keys(bool is_view_focused);
    /// Whether letter keys run actions: a view has the keyboard focus, and no text was typed within the last second.
    [[nodiscard]] bool takes_single_keys() const { return takes_single_keys_; }
    void draw_menu(const char* menu);

    void open_palette() { palette_wanted_ = true; }
    void draw_palette();
    /// Called before the palette opens. Adds actions for the open views and files until the palette closes.
    std::function<void(std::vector<Action>&)> add_to_palette;

    /// Called when the search text changes. Adds actions before or after all others.
    std::function<void(const std::string& search, std::vector<Action>& before, std::vector<Action>& behind)>
        add_for_search;

    [[nodiscard]] const std::vector<Action>& all() const { return actions_; }
    [[nodiscard]] const std::string& last() const { return last_; }
    void start(const Action& action);
    std::function<void(const std::string& name)> before_start;
    /// Called with the message of an exception that an action throws. Without on_failure, the exception propagates.
    std::function<void(const std::string& name, const std::string& message)> on_failure;

 private:
    std::vector<Action> actions_;
    std::vector<Action> extra_;
    std::vector<Action> before_, behind_;  ///< actions from add_for_search
    std::string last_;
    std::string search_;
    int chosen_ = 0;
    bool palette_wanted_ = false;
    bool takes_single_keys_ = false;
    double typed_at_ = -1e9;  ///< time when text was last typed, seconds
};

/// Whether these keys were pressed, no matter which item has the keyboard.
[[nodiscard]] bool is_shortcut_pressed(ImGuiKeyChord key);

/// Returns the key that shows or hides a run: 1 to 9, Shift+1 to 9, then Ctrl+1 to 9. Returns 0 for run 28 and later.
[[nodiscard]] ImGuiKeyChord run_visibility_key(int number);
inline constexpr int n_run_keys = 27;

[[nodiscard]] std::string shortcut_text(ImGuiKeyChord key);
[[nodiscard]] std::string shortcut_text(const Action& action);

}  // namespace kvscope::gui
