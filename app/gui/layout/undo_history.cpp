#include "app/gui/layout/undo_history.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <imgui.h>

#include <algorithm>
#include <utility>

namespace kvscope::gui {
namespace {

constexpr size_t most_undo = 100;
constexpr int frames_after_input = 4;  // an input takes effect within this number of frames
constexpr int frames_until_dropped = 2;

}  // namespace

void UndoHistory::begin_frame(bool has_input) {
    if (!ImGui::GetIO().WantTextInput) frames_of_input_ = std::max(frames_of_input_ - 1, 0);
    if (has_input) frames_of_input_ = frames_after_input;
}

bool UndoHistory::end_frame() {
    // Typing or dragging counts as one step. A dropped view needs a few frames to reach its place.
    const bool is_dragging = ImGui::IsAnyMouseDown();
    if (is_dragging || ImGui::IsMouseReleased(ImGuiMouseButton_Left))
        frames_to_drop_ = frames_until_dropped;
    else
        frames_to_drop_ = std::max(frames_to_drop_ - 1, 0);
    if (frames_to_drop_ == 0 && !ImGui::GetIO().WantTextInput) remember();
    return frames_to_drop_ > 0 && !is_dragging;
}

UndoHistory::Step UndoHistory::present() const {
    Step step;
    step.choices = {session_.cursor(), session_.pair.a, session_.pair.b, session_.pair.alone, session_.mark};
    for (const auto& document : session_.documents()) {
        step.choices.traces[document->id()] = document->path();
        step.choices.prompts[document->id()] = document->prompt;
        step.choices.hidden[document->id()] = document->hidden;
        step.choices.labels[document->id()] = document->given_labels();
        auto& pins = step.choices.pins[document->id()] = document->pins;
        std::erase_if(pins, [](const auto& of_prompt) { return of_prompt.second.empty(); });
    }
    for (const auto& open : views_.all()) step.choices.views.push_back(open->id());
    step.places = views_.places();
    return step;
}

void UndoHistory::remember() {
    if (views_.awaits_layout() || !views_.has_dock_space()) return;
    if (std::exchange(n_begun_, views_.n_begun()) != views_.n_begun()) {
        steps_.clear();
        undone_.clear();
    }
    Step now = present();
    const bool is_person = frames_of_input_ > 0;
    const bool has_moved = steps_.empty() || steps_.back().places != now.places;
    const bool is_other = steps_.empty() || steps_.back().choices != now.choices;
    if (!has_moved && !is_other) return;
    now.layout = views_.state();
    if (steps_.empty() || steps_.back().choices.views != now.choices.views) views_.await_places();
    const bool is_step = (is_person && (is_other || views_.is_settled())) || hides_runs(now);
    if (steps_.empty() || is_step) {
        steps_.push_back(std::move(now));
        if (steps_.size() > most_undo) steps_.erase(steps_.begin());
        undone_.clear();
    } else {
        steps_.back() = std::move(now);
    }
}

bool UndoHistory::hides_runs(const Step& now) const {
    if (steps_.empty()) return false;
    const auto& before = steps_.back().choices.hidden;
    return std::ranges::any_of(now.choices.hidden, [&](const auto& of_document) {
        const auto& [document, hidden] = of_document;
        const auto was = before.find(document);
        return was != before.end() &&
               !std::includes(was->second.begin(), was->second.end(), hidden.begin(), hidden.end());
    });
}

void UndoHistory::complete_step() {
    remember();
    if (!steps_.empty()) steps_.back().layout = views_.state();
}

std::string UndoHistory::difference(const Step& now, const Step& wanted) {
    const Choices &a = now.choices, &b = wanted.choices;
    std::vector<std::string> what;
    const auto add = [&](bool is_other, const char* name) {
        if (is_other) what.emplace_back(name);
    };
    add(a.traces != b.traces, "closing of a trace");
    add(a.cursor != b.cursor, "selection");
    add(a.a != b.a || a.b != b.b || a.pair_alone != b.pair_alone, "A and B");
    add(a.mark != b.mark, "mark");
    // Changes that result from reopening a trace are not listed.
    const auto differ = [](const auto& those, const auto& others) {
        return std::ranges::any_of(those, [&](const auto& of_document) {
            const auto other = others.find(of_document.first);
            return other != others.end() && other->second != of_document.second;
        });
    };
    add(differ(a.prompts, b.prompts), "prompt");
    add(differ(a.hidden, b.hidden), "shown runs");
    add(differ(a.pins, b.pins), "pins");
    add(differ(a.labels, b.labels), "labels");
    add(a.views != b.views, "views");
    add(a.views == b.views && now.places != wanted.places, "places of views");
    return fmt::format("{}", fmt::join(what, ", "));
}

std::string UndoHistory::go_to(const Step& step) {
    const Step now = present();
    const Choices& wanted = step.choices;
    for (const auto& [id, path] : wanted.traces)
        if (!session_.document(id)) session_.open_again(id, path);
    if (now.choices.views != wanted.views || now.places != step.places) views_.restore(step.layout, true);
    session_.pair.flicker.reset();
    const bool is_of_closed = wanted.cursor.run.document >= 0 && !session_.document(wanted.cursor.run);
    if (!is_of_closed && (!wanted.cursor.run.valid() || session_.exists(wanted.cursor.run)))
        session_.selection.set(wanted.cursor);
    session_.pair.a = wanted.a && session_.exists(*wanted.a) ? wanted.a : std::nullopt;
    session_.pair.b = wanted.b && session_.exists(*wanted.b) ? wanted.b : std::nullopt;
    session_.pair.alone = wanted.pair_alone;
    session_.mark = wanted.mark;
    for (const auto& document : session_.documents()) {
        const auto prompt = wanted.prompts.find(document->id());
        if (prompt != wanted.prompts.end() && prompt->second < document->reader()->n_prompts())
            document->prompt = prompt->second;
        const auto hidden = wanted.hidden.find(document->id());
        if (hidden != wanted.hidden.end()) document->hidden = hidden->second;
        const auto labels = wanted.labels.find(document->id());
        if (labels != wanted.labels.end() && labels->second != document->given_labels()) {
            document->set_given_labels(labels->second);
            document->annotations_changed = true;
        }
        const auto pins = wanted.pins.find(document->id());
        const auto pins_now = now.choices.pins.find(document->id());
        if (pins == wanted.pins.end() || pins_now == now.choices.pins.end() || pins_now->second == pins->second)
            continue;
        document->pins = pins->second;
        document->annotations_changed = true;
    }
    frames_of_input_ = 0;
    Step after = present();
    // The views reach their places a few frames later.
    after.choices.views = wanted.views;
    after.places = step.places;
    return difference(now, after);
}

std::string UndoHistory::undo() {
    std::string what;
    while (what.empty() && can_undo()) {  // skips steps whose trace or run no longer exists
        undone_.push_back(steps_.back());
        steps_.pop_back();
        what = go_to(steps_.back());
    }
    return what;
}

std::string UndoHistory::redo() {
    std::string what;
    while (what.empty() && can_redo()) {
        steps_.push_back(undone_.back());
        undone_.pop_back();
        what = go_to(steps_.back());
    }
    return what;
}

}  // namespace kvscope::gui
