#pragma once

namespace kvscope::gui {

class Actions;
class Window;
struct OpenView;

/// What the Help menu opens: mouse and keys, and what program this is.
class HelpPopups {
 public:
    void open_keys() { keys_wanted_ = true; }
    void open_about() { about_wanted_ = true; }
    /// Once a frame. @param view the one that has the keyboard, or nullptr: its own keys stand first
    void draw_keys(const OpenView* view, const Actions& actions);
    void draw_about(const Window& window);

 private:
    bool keys_wanted_ = false;
    bool about_wanted_ = false;
};

}  // namespace kvscope::gui
