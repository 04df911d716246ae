#include "app/gui/selection.h"

namespace kvscope::gui {

void Selection::set(const Cursor& cursor) {
    if (cursor == current()) return;
    history_.resize(at_ + 1);
    history_.push_back(cursor);
    if (history_.size() > most) history_.erase(history_.begin());
    at_ = history_.size() - 1;
}

void Selection::back() {
    if (can_go_back()) --at_;
}

void Selection::forward() {
    if (can_go_forward()) ++at_;
}

}  // namespace kvscope::gui
