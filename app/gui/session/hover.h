#pragma once

#include "app/gui/session/run_selection.h"

namespace kvscope::gui {

/// What the mouse is over, in whichever view. A view says so while it draws, and all views see it in the next frame.
class Hover {
 public:
    /// Empty where the mouse is over nothing.
    Cursor current() const { return current_; }
    /// Whether the prompt's text is to come to where the mouse is: where that moves along the tokens, as in a map. A
    /// list that it passes over lights up and moves nothing.
    bool leads() const { return leads_; }
    void set(const Cursor& cursor, bool leads = false) {
        next_ = cursor;
        next_leads_ = leads;
    }
    void end_frame() {
        current_ = next_;
        leads_ = next_leads_;
        next_ = {};
        next_leads_ = false;
    }
    /// A run is gone.
    void forget(const RunKey& run) {
        for (Cursor* over : {&current_, &next_})
            if (over->run == run) *over = {};
    }

 private:
    Cursor current_;
    Cursor next_;
    bool leads_ = false;
    bool next_leads_ = false;
};

}  // namespace kvscope::gui
