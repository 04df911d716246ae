#pragma once

#include "app/gui/session/selection.h"

namespace kvscope::gui {

/// What the mouse is over, in whichever view. A view says so while it draws, and all views see it in the next frame.
class Hover {
 public:
    /// Empty where the mouse is over nothing.
    Cursor current() const { return current_; }
    void set(const Cursor& cursor) { next_ = cursor; }
    void end_frame() {
        current_ = next_;
        next_ = {};
    }
    /// A run is gone.
    void forget(const RunKey& run) {
        for (Cursor* over : {&current_, &next_})
            if (over->run == run) *over = {};
    }

 private:
    Cursor current_;
    Cursor next_;
};

}  // namespace kvscope::gui
