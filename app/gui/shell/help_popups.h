#pragma once

namespace kvscope::gui {

class Actions;
class Window;
struct OpenView;

class HelpPopups {
 public:
    void open_keys() { keys_wanted_ = true; }
    void open_about() { about_wanted_ = true; }
    /// Draws the help for mouse and keys. The help of `view` comes first, unless `view` is nullptr.
    void draw_keys(const OpenView* view, const Actions& actions);
    void draw_about(const Window& window);

 private:
    bool keys_wanted_ = false;
    bool about_wanted_ = false;
};

}  // namespace kvscope::gui
