#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "app/gui/drawing/theme.h"
#include "app/gui/shell/window.h"

namespace kvscope::gui {

/// Messages that a person should see. They begin in the empty part of the menu bar, where they lie over nothing that is
/// read or typed into, go away by themselves or by a click, and stay in the log. Two are shown at once, what went wrong
/// first; the others wait until there is room, and a line says how many they are.
class Notices {
 public:
    explicit Notices(Window& window) : window_(window) {}

    /// The window is drawn soon.
    void add(const std::string& text, bool is_error = false);
    /// The same in place of the one of this kind that is still shown.
    void replace(const std::string& kind, const std::string& text);
    /// `add`, for what tells a person something and knows no window; to be called as long as this is there.
    std::function<void(const std::string& text, bool is_error)> function();
    /// Once a frame; the window is drawn again when the next of those that are shown goes.
    void draw(const Theme& theme);
    /// Since the window opened.
    const std::vector<std::string>& all() const { return all_; }
    /// Of them, those that say what went wrong.
    size_t n_errors() const { return n_errors_; }

 private:
    struct Notice {
        std::string text;
        bool is_error;
        double until;
        std::string kind{};
    };
    Window& window_;
    std::vector<std::string> all_;
    size_t n_errors_ = 0;
    std::vector<Notice> shown_;
};

}  // namespace kvscope::gui
