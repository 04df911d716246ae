#pragma once

#include <imgui.h>

#include <functional>
#include <string>
#include <vector>

namespace kvscope::gui {

/// Something a person can do, in one place for menus, keys and the command palette.
struct Action {
    std::string name;  ///< "Open trace…"
    std::string menu;  ///< "File"; empty: palette and key alone
    ImGuiKeyChord key = 0;
    std::function<void()> run;
    std::function<bool()> enabled;  ///< empty: always
    std::function<bool()> checked;  ///< empty: nothing to check
    bool separator_before = false;
    /// Of several with keys in a row: the keys and what they do, as one line of the help. The palette leaves such out.
    std::string row_keys = {};
    std::string row_name = {};
};

class Actions {
 public:
    void add(Action action);
    /// Once a frame, before anything is drawn: runs the action whose keys were pressed. Keys that type a character, and
    /// those that edit, stay with a text field that is being edited.
    /// @param is_view_focused whether keys that type a character may be commands
    void handle_keys(bool is_view_focused);
    /// In this frame, a key that types a character is a command: a view has the keyboard, no text is edited, and
    /// nothing was typed within the last second.
    bool takes_single_keys() const { return takes_single_keys_; }
    void draw_menu(const char* menu);

    void open_palette() { palette_wanted_ = true; }
    /// The search box over all actions, nearest names first.
    void draw_palette();
    /// Called before the palette shows, to add actions that depend on what is open; they last until it closes.
    std::function<void(std::vector<Action>&)> add_to_palette;

    /// Called with what is typed into the palette whenever that changes: what it adds stands before or behind all
    /// others.
    std::function<void(const std::string& search, std::vector<Action>& before, std::vector<Action>& behind)>
        add_for_search;

    const std::vector<Action>& all() const { return actions_; }
    /// The last action that was started, for the crash log.
    const std::string& last() const { return last_; }
    void start(const Action& action);
    /// Called before an action is started, with everything as it was.
    std::function<void(const std::string& name)> before_start;
    /// Called with what an action throws; empty: it is thrown on.
    std::function<void(const std::string& name, const std::string& message)> on_failure;

 private:
    std::vector<Action> actions_;
    std::vector<Action> extra_;
    std::vector<Action> before_, behind_;  ///< of add_for_search
    std::string last_;
    std::string search_;
    int chosen_ = 0;
    bool palette_wanted_ = false;
    bool takes_single_keys_ = false;
    double typed_at_ = -1e9;  ///< when text was typed last; what is typed within the next second is no command
};

/// Whether these keys were pressed, whatever has the keyboard.
bool is_pressed(ImGuiKeyChord key);

/// The key that shows or hides the run which stands at this place in the list of runs, from 1; 0: it has none. 1 to 9,
/// then with Shift 10 to 18, then with Ctrl 19 to 27.
ImGuiKeyChord run_key(int number);
constexpr int n_run_keys = 27;

std::string key_text(ImGuiKeyChord key);
/// "Ctrl+Shift+P"
std::string key_text(const Action& action);

}  // namespace kvscope::gui
