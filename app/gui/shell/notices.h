#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "app/gui/drawing/theme.h"

namespace kvscope::gui {

/// Messages in the window's corner that a person should see: they go away by themselves, or by a click, and stay in the
/// log.
class Notices {
 public:
    void add(const std::string& text, bool is_error);
    /// Once a frame. @returns after how many seconds the next of those that are shown goes; below 0: none is shown
    double draw(const Theme& theme);
    /// Since the window opened.
    const std::vector<std::string>& all() const { return all_; }
    /// Of them, those that say what went wrong.
    size_t n_errors() const { return n_errors_; }

 private:
    struct Notice {
        std::string text;
        bool is_error;
        double until;
    };
    std::vector<std::string> all_;
    size_t n_errors_ = 0;
    std::vector<Notice> shown_;
};

}  // namespace kvscope::gui
