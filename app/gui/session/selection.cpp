#include "app/gui/session/selection.h"

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

void Selection::forget(const RunKey& run) {
    for (Cursor& cursor : history_)
        if (cursor.run == run) cursor.run.run = {};
    drop_repeated();
}

void Selection::forget_document(int document) {
    for (Cursor& cursor : history_)
        if (cursor.run.document == document) cursor = {};
    drop_repeated();
}

/// Of places that are one now, one after the other, the first stays.
void Selection::drop_repeated() {
    for (size_t i = 1; i < history_.size();) {
        if (history_[i] != history_[i - 1]) {
            ++i;
            continue;
        }
        history_.erase(history_.begin() + static_cast<std::ptrdiff_t>(i));
        if (at_ >= i) --at_;
    }
}

}  // namespace kvscope::gui
