#include "app/gui/session/selection.h"

#include <algorithm>

namespace kvscope::gui {

void Selection::set(const Cursor& cursor) {
    if (cursor == current()) return;
    history_.resize(at_ + 1);
    history_.push_back(cursor);
    if (history_.size() > most) history_.erase(history_.begin());
    at_ = history_.size() - 1;
}

Cursor Selection::cursor_at(const RunKey& key) const {
    Cursor moved = current();
    if (moved.run.document != key.document || moved.run.prompt != key.prompt) moved = {};
    moved.run = key;
    return moved;
}

Cursor Selection::cursor_in(int document, int prompt) const {
    Cursor there = current();
    if (there.run.document == document && there.run.prompt == prompt) return there;
    there = {};
    there.run = {document, prompt, {}};
    return there;
}

void Selection::select_token(int64_t token, bool extend) {
    Cursor moved = current();
    if (extend && moved.has_tokens()) {
        moved.first_token = std::min(moved.first_token, token);
        moved.last_token = std::max(moved.last_token, token);
    } else {
        moved.first_token = moved.last_token = token;
    }
    set(moved);
}

void Selection::select_layer(int layer) {
    Cursor moved = current();
    moved.layer = layer;
    set(moved);
}

void Selection::select_head(int layer, int kv_head, int query_head) {
    Cursor moved = current();
    moved.layer = layer;
    moved.kv_head = kv_head;
    moved.query_head = query_head;
    set(moved);
}

void Selection::select_step(int step) {
    Cursor moved = current();
    moved.step = step;
    set(moved);
}

void Selection::deselect() {
    Cursor moved;
    moved.run = current().run;
    set(moved);
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
