#pragma once

#include "app/gui/session/selection.h"

namespace kvscope::gui {

/// The place under the mouse. Views set it while they draw, and all views read it in the next frame.
class Hover {
 public:
    [[nodiscard]] Cursor current() const { return current_; }
    /// Whether the prompt's text should scroll to the hovered token. True for maps of tokens, false for lists.
    [[nodiscard]] bool leads() const { return leads_; }
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
