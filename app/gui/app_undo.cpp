#include "app/gui/app.h"

namespace kvscope::gui {
namespace {

constexpr size_t most_undo = 100;

nlohmann::json json_of(const Cursor& cursor) {
    return {cursor.run.document, cursor.run.prompt,  cursor.run.run,    cursor.layer, cursor.kv_head,
            cursor.query_head,   cursor.first_token, cursor.last_token, cursor.step};
}

Cursor cursor_of(const nlohmann::json& json) {
    return {
        {json.at(0), json.at(1), json.at(2)}, json.at(3), json.at(4), json.at(5), json.at(6), json.at(7), json.at(8)};
}

}  // namespace

void App::remember_undo() {
    nlohmann::json now = {{"cursor", json_of(session_.cursor())}, {"views", nlohmann::json::array()}};
    for (const auto& open : views_) now["views"].push_back(open->id());
    if (!undo_.empty() && undo_.back()["cursor"] == now["cursor"] && undo_.back()["views"] == now["views"]) return;
    now["layout"] = layout_state();
    undo_.push_back(std::move(now));
    if (undo_.size() > most_undo) undo_.erase(undo_.begin());
    redo_.clear();
}

/// What was moved or set since the last step comes back with it when the next step is undone.
void App::refresh_undo() {
    if (!undo_.empty()) undo_.back()["layout"] = layout_state();
}

void App::go_to_state(const nlohmann::json& state) {
    nlohmann::json views = nlohmann::json::array();
    for (const auto& open : views_) views.push_back(open->id());
    if (views != state["views"]) restore_layout(state["layout"]);
    const Cursor cursor = cursor_of(state["cursor"]);
    if (!cursor.run.valid() || session_.exists(cursor.run)) session_.selection.set(cursor);
}

void App::undo() {
    if (undo_.size() < 2) return;
    redo_.push_back(undo_.back());
    undo_.pop_back();
    go_to_state(undo_.back());
}

void App::redo() {
    if (redo_.empty()) return;
    undo_.push_back(redo_.back());
    redo_.pop_back();
    go_to_state(undo_.back());
}

}  // namespace kvscope::gui
