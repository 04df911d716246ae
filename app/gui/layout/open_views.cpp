#include "app/gui/layout/open_views.h"

#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <utility>

#include "app/gui/layout/dock_places.h"
#include "app/gui/view/widgets.h"

namespace kvscope::gui {
namespace {

constexpr int frames_until_settled = 6;

/// Focuses the window that was clicked, because a click in a plot does not focus its window.
void focus_where_clicked() {
    const bool is_clicked =
        ImGui::IsMouseClicked(ImGuiMouseButton_Left) || ImGui::IsMouseClicked(ImGuiMouseButton_Right);
    if (is_clicked &&
        ImGui::IsWindowHovered(ImGuiHoveredFlags_RootAndChildWindows |
                               ImGuiHoveredFlags_AllowWhenBlockedByActiveItem) &&
        !ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows))
        ImGui::SetWindowFocus();
}

}  // namespace

OpenViews::OpenViews(Window& window, const Session& session, Notices& notices, std::string only)
    : window_(window), notices_(notices), only_(std::move(only)), guard_(window, session) {}

OpenView& OpenViews::add(const ViewKind& kind, int number) {
    OpenView& opened = *views_.emplace_back(std::make_unique<OpenView>());
    opened.kind = &kind;
    opened.number = number;
    return opened;
}

bool OpenViews::is_taken(const ViewKind& kind, int number) const {
    const auto is_it = [&](const auto& open) { return open->kind == &kind && open->number == number; };
    return std::ranges::any_of(views_, is_it) || std::ranges::any_of(put_away_, is_it);
}

std::unique_ptr<OpenView> OpenViews::take(std::vector<std::unique_ptr<OpenView>>& views, const ViewKind& kind,
                                          std::optional<int> number) {
    auto first = views.end();
    for (auto at = views.begin(); at != views.end(); ++at) {
        const bool fits = (*at)->kind == &kind && (*at)->view && (*at)->number == number.value_or((*at)->number);
        if (fits && (first == views.end() || (*at)->number < (*first)->number)) first = at;
    }
    if (first == views.end()) return nullptr;
    auto taken = std::move(*first);
    views.erase(first);
    return taken;
}

void OpenViews::put_away(std::vector<std::unique_ptr<OpenView>> views) {
    for (auto& open : views) {
        if (!open->view) continue;
        open->view->put_away();
        put_away_.push_back(std::move(open));
    }
}

OpenView& OpenViews::open(const ViewKind& kind) {
    const auto kept = take(put_away_, kind);
    if (!kept) return open_new(kind);
    OpenView& opened = add(kind, kept->number);
    opened.view = std::move(kept->view);
    dock(opened);
    return opened;
}

OpenView& OpenViews::open_new(const ViewKind& kind) {
    int number = 1;
    while (is_taken(kind, number)) ++number;
    OpenView& opened = add(kind, number);
    opened.view = kind.create();
    dock(opened);
    return opened;
}

void OpenViews::dock(OpenView& opened) const {
    opened.focus = true;
    const auto dock_beside = [&](const auto& is_neighbour) {
        for (const auto& other : views_) {
            if (other.get() == &opened || !is_neighbour(*other)) continue;
            const ImGuiWindow* beside = ImGui::FindWindowByName(other->title().c_str());
            if (!beside || !beside->DockId) continue;
            ImGui::DockBuilderDockWindow(opened.title().c_str(), beside->DockId);
            return true;
        }
        return false;
    };
    if (dock_beside([&](const OpenView& other) { return other.kind == opened.kind; })) return;
    if (dock_beside([&](const OpenView& other) { return other.kind->dock == opened.kind->dock; })) return;
    dock_beside([](const OpenView&) { return true; });  // a maximized view may not be in its usual place
}

void OpenViews::open(const std::string& kind, const nlohmann::json& state) {
    const ViewKind* found = find_view_kind(kind);
    if (found) restore_first([this, found, state] { set_state(open_new(*found), state); });
}

void OpenViews::open_after_restoring(const ViewKind& kind) {
    restore_first([this, &kind] { open(kind); });
}

void OpenViews::show(const ViewKind& kind, const nlohmann::json& state) {
    const auto act = [this, &kind, state] {
        OpenView& shown = show_now(kind);
        if (!state.is_null()) set_state(shown, state);
    };
    first_of(kind) ? act() : restore_first(act);
}

void OpenViews::restore_first(std::function<void()> act) {
    if (!is_maximised()) return act();
    after_restoring_ = std::move(act);
    window_.draw_again();
}

OpenView* OpenViews::first_of(const ViewKind& kind) const {
    const auto first = std::ranges::find_if(views_, [&](const auto& view) { return view->kind == &kind; });
    return first == views_.end() ? nullptr : first->get();
}

OpenView& OpenViews::show_now(const ViewKind& kind) {
    start_dismissed_ = true;
    in_front_.clear();
    OpenView* first = first_of(kind);
    OpenView& shown = first ? *first : open(kind);
    give_keyboard(shown);
    return shown;
}

void OpenViews::run_command(const std::string& id, const std::string& command) {
    const auto found = std::ranges::find_if(views_, [&](const auto& open) { return open->id() == id; });
    if (found == views_.end()) return;
    start_dismissed_ = true;
    in_front_.clear();
    give_keyboard(**found);
    (*found)->view->request_command(command);
}

void OpenViews::give_keyboard(OpenView& view) {
    view.focus = true;
    focus_in_the_end_ = view.title();
}

void OpenViews::bring_to_front(const ViewKind& kind) {
    // Until the places settle, other tabs move to the front by themselves.
    if (!is_settled() || !wanted_maximised_.empty()) {
        wanted_in_front_ = &kind;
        return;
    }
    for (const auto& open : views_) {
        const ImGuiWindow* window = open->kind == &kind ? ImGui::FindWindowByName(open->title().c_str()) : nullptr;
        if (!window || !window->DockNode || !window->DockNode->TabBar) continue;
        window->DockNode->TabBar->NextSelectedTabId = window->TabId;
        return;
    }
}

void OpenViews::start_or_show(const ViewKind& kind) {
    start_dismissed_ = true;
    OpenView* first = first_of(kind);
    if (!first) return open_after_restoring(kind);
    if (first == focused()) return first->view->start();
    for (const auto& other : views_) other->focus = other->focus && other->kind->dock != Dock::left;
    give_keyboard(*first);
}

void OpenViews::show_alone(const ViewKind& kind) {
    const OpenView* first = first_of(kind);
    const bool was_in_front = first && first->focus;
    OpenView& shown = show_now(kind);
    if (is_maximised()) {
        if (maximised_ == shown.id()) return;
        wanted_maximised_ = maximised_;  // restores all views first
        alone_next_ = shown.id();
        return;
    }
    // A view that the start cards have covered comes to the front in its first frame only if it was in front before.
    if (!shown.is_drawn) shown.focus = was_in_front;
    wanted_maximised_ = shown.id();
    is_alone_ = true;
}

void OpenViews::end_alone() {
    if (std::exchange(is_alone_, false) && is_maximised()) wanted_maximised_ = maximised_;
}

void OpenViews::end_maximised() {
    is_alone_ = false;
    if (is_maximised()) wanted_maximised_ = maximised_;
}

void OpenViews::end_alone(const ViewKind& kind) {
    end_alone();
    if (maximised_.starts_with(kind.name + "-") && is_maximised()) wanted_maximised_ = maximised_;
}

OpenView* OpenViews::focused() const {
    for (const auto& view : views_)
        if (view->id() == focused_) return view.get();
    return nullptr;
}

bool OpenViews::have_keyboard() const {
    const ImGuiWindow* window = ImGui::GetCurrentContext()->NavWindow;
    const auto has_it = [&](const auto& open) {
        return window && window->RootWindow == ImGui::FindWindowByName(open->title().c_str());
    };
    return views_.empty() || std::ranges::any_of(views_, has_it);
}

const OpenView* OpenViews::find(const View& view) const {
    for (const auto& open : views_)
        if (open->view.get() == &view) return open.get();
    return nullptr;
}

void OpenViews::set_state(OpenView& open, const nlohmann::json& state) {
    try {
        open.view->load(state);
    } catch (const nlohmann::json::exception&) {
    } catch (const std::exception& error) {
        notices_.add(
            fmt::format("the settings of the view {} could not be restored: {}", open.kind->title, error.what()), true);
    }
}

void OpenViews::begin_frame() {
    frames_to_settle_ = std::max(frames_to_settle_ - 1, 0);
    if (!tab_order_.empty()) sort_tabs(dock_space_, tab_order_);
    if (is_settled()) {
        tab_order_.clear();
        in_front_.clear();
        if (wanted_in_front_) bring_to_front(*std::exchange(wanted_in_front_, nullptr));
    }
    if (after_restoring_) end_maximised();
    if (is_maximised()) end_maximised_where_due();
    if (!after_restoring_) return;
    if (is_settled() && !is_maximised())
        std::exchange(after_restoring_, nullptr)();
    else
        window_.draw_again();
}

void OpenViews::await_places() { frames_to_settle_ = frames_until_settled; }

void OpenViews::close_focused() {
    if (OpenView* open = focused()) open->open = false;
}

void OpenViews::close_others() {
    const OpenView* stays = focused();
    if (!stays) return;
    for (const auto& open : views_) open->open = open.get() == stays;
    before_maximised_ = nullptr;  // the other views were already closed and are kept
    is_alone_ = false;
}

void OpenViews::toggle_maximised() {
    if (const OpenView* open = focused()) wanted_maximised_ = open->id();
}

bool OpenViews::draw_dock_space() {
    const ImGuiID id = ImGui::GetID("dock space");
    sizes_.fit(id, ImGui::GetMainViewport()->WorkSize);
    const float em = ImGui::GetFontSize();
    ImGui::PushStyleVar(ImGuiStyleVar_WindowMinSize, {10 * em, 8 * em});  // smallest size of views next to a splitter
    dock_space_ = ImGui::DockSpaceOverViewport(id, nullptr, ImGuiDockNodeFlags_PassthruCentralNode);
    ImGui::PopStyleVar();
    if (!wanted_maximised_.empty() && !is_maximised()) maximise(std::exchange(wanted_maximised_, {}));
    if (!awaits_layout()) return false;
    build_layout();
    return true;
}

void OpenViews::draw(Context& context, ViewPicture& picture) {
    for (size_t i = 0; i < views_.size(); ++i)  // NOLINT(modernize-loop-convert): drawing a view may open another
        draw_one(*views_[i], context, picture);
    put_closed_away();
    if (!focus_in_the_end_.empty()) ImGui::SetWindowFocus(focus_in_the_end_.c_str());
    const bool is_focus_set = std::ranges::none_of(views_, [](const auto& open) { return open->focus; });
    if (is_focus_set)
        focus_in_the_end_.clear();
    else
        window_.draw_again();
}

void OpenViews::put_closed_away() {
    std::vector<std::unique_ptr<OpenView>> with_text;
    for (auto& open : views_)
        if (!open->open && open->view && open->view->holds_text()) with_text.push_back(std::move(open));
    std::erase_if(views_, [](const auto& open) { return !open || !open->open; });
    put_away(std::move(with_text));
}

void OpenViews::draw_one(OpenView& open, Context& context, ViewPicture& picture) {
    const bool wants_focus = std::exchange(open.focus, false);
    if (wants_focus) ImGui::SetNextWindowFocus();
    const float em = ImGui::GetFontSize();
    ImGui::SetNextWindowSize({40 * em, 24 * em}, ImGuiCond_FirstUseEver);
    ImGuiWindowClass docked;
    docked.DockNodeFlagsOverrideSet = ImGuiDockNodeFlags_NoCloseButton;  // its close button would close all tabs
    ImGui::SetNextWindowClass(&docked);
    // Docked views have the color of the cleared frame. With software rendering, filling them again would take 10 ms.
    const ImGuiWindowFlags ground = open.is_docked ? ImGuiWindowFlags_NoBackground : 0;
    if (ImGui::Begin(open.title().c_str(), &open.open, ImGuiWindowFlags_NoCollapse | ground)) {
        if (open.is_docked && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left) &&
            ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenBlockedByActiveItem))
            wanted_maximised_ = open.id();
        focus_where_clicked();
        if (ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows)) focused_ = open.id();
        guard_.draw(open, context);
        draw_scroll_fade(context.theme);
    }
    open.is_drawn = true;
    open.is_docked = ImGui::IsWindowDocked();
    // A docked window does not have a tab in its first frame.
    const ImGuiWindow* window = ImGui::GetCurrentWindow();
    ImGuiTabBar* tabs = window->DockNode ? window->DockNode->TabBar : nullptr;
    const bool has_tab = tabs && ImGui::TabBarFindTabByID(tabs, window->TabId);
    if (wants_focus && open.is_docked && !has_tab) open.focus = true;
    // If several tabs are new, Dear ImGui shows the last one.
    if (has_tab && std::ranges::find(in_front_, open.id()) != in_front_.end()) tabs->NextSelectedTabId = window->TabId;
    picture.take_if_wanted(open);
    ImGui::End();
}

std::string OpenViews::places() const {
    std::string text = stamp_of_dock_places(dock_space_);
    for (const auto& open : views_) {
        const ImGuiWindow* window = ImGui::FindWindowByName(open->title().c_str());
        if (window && !window->DockIsActive)
            text += fmt::format("{} {:.0f} {:.0f} {:.0f} {:.0f};", open->id(), window->Pos.x, window->Pos.y,
                                window->SizeFull.x, window->SizeFull.y);
    }
    return text;
}

}  // namespace kvscope::gui
