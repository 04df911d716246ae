#pragma once

#include "app/gui/session/run_selection.h"

namespace kvscope::gui {

/// What the mouse points at, in any view. Views call set() while they draw; all views read the result in the next
/// frame.
class Hover {
 public:
    /// Returns an empty cursor if the mouse is over nothing.
    Cursor current() const { return current_; }
    /// Whether the prompt's text should scroll to the hovered token. True for maps of tokens, false for lists.
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
    /// Clears the cursor if it is at this run.
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
