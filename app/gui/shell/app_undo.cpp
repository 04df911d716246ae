#include <fmt/format.h>
#include <imgui.h>
#include <imgui_internal.h>

#include <cmath>

#include "app/gui/shell/app.h"

namespace kvscope::gui {
namespace {

constexpr size_t most_undo = 100;
constexpr int frames_until_docked = 6;  // what stood beside a view that was opened or closed

/// Splitters and the order of tabs below a node.
void describe(const ImGuiDockNode* node, std::string& text) {
    if (!node) return;
    if (node->IsSplitNode()) {
        const ImVec2 size = node->ChildNodes[0]->SizeRef;
        text += fmt::format("{}{:.0f}(", node->SplitAxis == ImGuiAxis_X ? 'x' : 'y',
                            node->SplitAxis == ImGuiAxis_X ? size.x : size.y);
        for (const ImGuiDockNode* child : node->ChildNodes) describe(child, text);
        text += ')';
    } else if (node->TabBar) {
        for (const ImGuiTabItem& tab : node->TabBar->Tabs) text += fmt::format("{:x} ", tab.ID);
    } else {
        for (const ImGuiWindow* window : node->Windows) text += fmt::format("{:x} ", window->TabId);
    }
    text += ';';
}

}  // namespace

App::UndoStep App::present_step() const {
    UndoStep step;
    step.choices = {session_.cursor(), session_.a, session_.b, session_.mark, {}, {}, {}};
    for (const auto& document : session_.documents()) {
        step.choices.hidden[document->id()] = document->hidden;
        auto& pins = step.choices.pins[document->id()] = document->pins;
        std::erase_if(pins, [](const auto& of_prompt) { return of_prompt.second.empty(); });
    }
    describe(ImGui::DockBuilderGetNode(dock_space_), step.places);
    for (const auto& open : views_) {
        step.choices.views.push_back(open->id());
        const ImGuiWindow* window = ImGui::FindWindowByName(open->title().c_str());
        if (window && !window->DockIsActive)
            step.places += fmt::format("{} {:.0f} {:.0f} {:.0f} {:.0f};", open->id(), window->Pos.x, window->Pos.y,
                                       window->SizeFull.x, window->SizeFull.y);
    }
    return step;
}

/// What the program does by itself, and what a window's other size moves, is no step of its own.
void App::remember_undo() {
    if (!wanted_layout_.empty() || dock_space_ == 0) return;
    UndoStep now = present_step();
    const bool is_person = frames_of_input_ > 0;
    const bool has_moved = undo_.empty() || undo_.back().places != now.places;
    const bool is_other = undo_.empty() || undo_.back().choices != now.choices;
    if (!has_moved && !is_other) return;
    now.layout = layout_state();
    if (undo_.empty() || undo_.back().choices.views != now.choices.views) frames_to_settle_ = frames_until_docked;
    if (undo_.empty() || (is_person && (is_other || frames_to_settle_ == 0))) {
        undo_.push_back(std::move(now));
        if (undo_.size() > most_undo) undo_.erase(undo_.begin());
        redo_.clear();
    } else {
        undo_.back() = std::move(now);
    }
}

/// Before something happens: what was typed or moved until now is a step, and what was set in views comes back with it.
void App::refresh_undo() {
    remember_undo();
    if (!undo_.empty()) undo_.back().layout = layout_state();
}

void App::go_to_step(const UndoStep& step) {
    const UndoStep now = present_step();
    const Choices& wanted = step.choices;
    if (now.choices.views != wanted.views || now.places != step.places) restore_layout(step.layout, true);
    session_.flicker.reset();
    if (!wanted.cursor.run.valid() || session_.exists(wanted.cursor.run)) session_.selection.set(wanted.cursor);
    session_.a = wanted.a && session_.exists(*wanted.a) ? wanted.a : std::nullopt;
    session_.b = wanted.b && session_.exists(*wanted.b) ? wanted.b : std::nullopt;
    session_.mark = wanted.mark;
    for (const auto& document : session_.documents()) {
        const auto hidden = wanted.hidden.find(document->id());
        if (hidden != wanted.hidden.end()) document->hidden = hidden->second;
        const auto pins = wanted.pins.find(document->id());
        if (pins == wanted.pins.end() || now.choices.pins.at(document->id()) == pins->second) continue;
        document->pins = pins->second;
        document->annotations_changed = true;
    }
    frames_of_input_ = 0;
}

void App::undo() {
    if (undo_.size() < 2) return;
    redo_.push_back(undo_.back());
    undo_.pop_back();
    go_to_step(undo_.back());
}

void App::redo() {
    if (redo_.empty()) return;
    undo_.push_back(redo_.back());
    redo_.pop_back();
    go_to_step(undo_.back());
}

}  // namespace kvscope::gui
