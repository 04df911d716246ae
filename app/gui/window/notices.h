#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "app/gui/drawing/theme.h"
#include "app/gui/session/tasks.h"
#include "app/gui/window/window.h"

namespace kvscope::gui {

/// Messages in the menu bar, at most two and errors first. They disappear by themselves or when clicked, and stay in
/// the log.
class Notices {
 public:
    explicit Notices(Window& window) : window_(window) {}

    void add(const std::string& text, bool is_error = false);
    /// Adds a notice that replaces the visible notice of the same kind.
    void replace(const std::string& kind, const std::string& text);
    /// Returns a function that calls add(). Do not call the function after this object is destroyed.
    [[nodiscard]] Notice function();
    void draw(const Theme& theme);
    [[nodiscard]] const std::vector<std::string>& all() const { return all_; }
    [[nodiscard]] size_t n_errors() const { return n_errors_; }

 private:
    struct Shown {
        std::string text;
        bool is_error;
        double until;
        std::string kind{};
    };
    Window& window_;
    std::vector<std::string> all_;
    size_t n_errors_ = 0;
    std::vector<Shown> shown_;
};

}  // namespace kvscope::gui
