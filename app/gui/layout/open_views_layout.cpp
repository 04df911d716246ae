#include <fmt/format.h>
#include <imgui.h>
#include <imgui_internal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <climits>
#include <set>
#include <type_traits>
#include <utility>

#include "app/gui/layout/dock_places.h"
#include "app/gui/layout/layouts.h"
#include "app/gui/layout/open_views.h"

namespace kvscope::gui {
namespace {

constexpr int most_of_a_kind = 999;

template <class T>
T stored(const nlohmann::json& object, const char* key, T otherwise) {
    const auto found = object.find(key);
    if (found == object.end()) return otherwise;
    bool fits = false;
    if constexpr (std::is_same_v<T, bool>)
        fits = found->is_boolean();
    else if constexpr (std::is_same_v<T, int>)
        fits = found->is_number_integer() && *found >= INT_MIN && *found <= INT_MAX;
    else
        fits = found->is_string();
    return fits ? found->template get<T>() : otherwise;
}

int number_of(const nlohmann::json& saved) { return std::clamp(stored(saved, "number", 1), 1, most_of_a_kind); }

}  // namespace

nlohmann::json OpenViews::state_of(const OpenView& open) {
    nlohmann::json state = nlohmann::json::object();
    try {
        open.view->save(state);
    } catch (const std::exception&
                 error) {  // logged at debug level because this runs in every frame; values saved so far are kept
        spdlog::debug("the view {} cannot save its settings: {}", open.kind->title, error.what());
    }
    nlohmann::json all = {{"kind", open.kind->name}, {"number", open.number}, {"state", state}};
    if (!open.left_layout.empty()) all["left_layout"] = open.left_layout;
    return all;
}

bool OpenViews::is_filled_in(const OpenView& open) {
    if (!open.view->holds_text()) return false;
    OpenView empty;
    empty.kind = open.kind;
    empty.view = open.kind->create();
    return state_of(open)["state"] != state_of(empty)["state"];
}

void OpenViews::end_maximised_where_due() {
    const auto is_it = [&](const auto& open) { return open->id() == maximised_; };
    const bool was_closed = std::ranges::none_of(views_, is_it);
    if (!was_closed && wanted_maximised_.empty()) return;
    wanted_maximised_.clear();
    nlohmann::json all = state();
    auto& views = all["views"];
    for (auto at = views.begin(); was_closed && at != views.end();) {
        const bool is_closed = fmt::format("{}-{}", stored(*at, "kind", std::string()), number_of(*at)) == maximised_;
        at = is_closed ? views.erase(at) : at + 1;
    }
    restore(all, true);
    if (alone_next_.empty()) return;
    wanted_maximised_ = std::exchange(alone_next_, {});
    is_alone_ = true;
}

void OpenViews::maximise(const std::string& id) {
    const auto wanted = std::ranges::find_if(views_, [&](const auto& open) { return open->id() == id && open->view; });
    if (wanted == views_.end() || views_.size() < 2) return;
    nlohmann::json as_they_are = state();
    auto alone = std::move(*wanted);
    views_.erase(wanted);
    put_away(std::exchange(views_, {}));
    views_of_later_.clear();
    alone->focus = true;
    focus_in_the_end_ = alone->title();
    const auto places = split_dock_space(dock_space_, {});
    ImGui::DockBuilderDockWindow(alone->title().c_str(), places.at("all"));
    ImGui::DockBuilderFinish(dock_space_);
    views_.push_back(std::move(alone));
    before_maximised_ = std::move(as_they_are);
    maximised_ = id;
    await_places();
}

nlohmann::json OpenViews::state() const {
    if (is_maximised()) {
        nlohmann::json then = before_maximised_;
        for (auto& saved : then["views"])
            for (const auto* views : {&views_, &put_away_})
                for (const auto& open : *views)
                    if (open->kind->name == stored(saved, "kind", std::string()) && open->number == number_of(saved))
                        saved["state"] = state_of(*open)["state"];
        return then;
    }
    nlohmann::json views = nlohmann::json::array();
    for (const auto& open : views_) {
        const ImGuiWindow* window = open->is_drawn ? ImGui::FindWindowByName(open->title().c_str()) : nullptr;
        views.push_back(state_of(*open));
        // A view under the start cards has not been drawn yet and has no tab. `focus` says whether it is in front.
        const bool is_tab = window && window->DockIsActive;
        const bool is_floating = window && window->DockId == 0;
        views.back()["in_front"] = is_tab ? window->DockTabIsVisible : is_floating || open->focus;
    }
    for (const auto& view : views_of_later_) views.push_back(view);
    nlohmann::json put_away = nlohmann::json::array();
    for (const auto& open : put_away_) put_away.push_back(state_of(*open));
    return {{"views", views},
            {"put_away", put_away},
            {"layout", layout_},
            {"keyboard", focused_},
            {"windows", ImGui::SaveIniSettingsToMemory()}};
}

void OpenViews::restore(const nlohmann::json& state, bool keep_views) {
    if (!state.is_object() || !state.contains("views") || !state["views"].is_array()) return;
    before_maximised_ = nullptr;
    is_alone_ = false;
    auto before = std::exchange(views_, {});
    const auto is_replaced = [&](const auto& open) { return !keep_views && !(open->view && is_filled_in(*open)); };
    std::erase_if(before, is_replaced);
    std::erase_if(put_away_, is_replaced);
    std::vector<std::unique_ptr<OpenView>> also_filled_in;  // restored views with the same numbers as open views
    views_of_later_.clear();
    in_front_.clear();
    layout_ = stored(state, "layout", std::string());
    if (!keep_views) ++n_begun_;
    const std::string keyboard = stored(state, "keyboard", std::string());
    for (const auto& saved : state["views"]) {
        if (!saved.is_object() || !saved.contains("kind") || !saved["kind"].is_string()) continue;
        const ViewKind* kind = find_view_kind(saved["kind"].get<std::string>());
        if (!kind) {
            views_of_later_.push_back(saved);
            continue;
        }
        OpenView& opened = add(*kind, number_of(saved));
        opened.focus = stored(saved, "in_front", false);
        if (opened.focus) in_front_.push_back(opened.id());
        auto kept = take(before, *kind, opened.number);
        if (!kept) kept = take(put_away_, *kind, opened.number);
        opened.view = kept ? std::move(kept->view) : kind->create();
        if (opened.id() == keyboard) focus_in_the_end_ = opened.title();
        std::unique_ptr<OpenView> other;
        if (kept && !keep_views) {
            opened.view->put_away();  // closes dialogs that belonged to the previous state
            other = std::make_unique<OpenView>();
            other->kind = kind;
            other->view = kind->create();
        }
        if (!kept || other) set_state(other ? *other : opened, saved.value("state", nlohmann::json::object()));
        if (other && is_filled_in(*other)) also_filled_in.push_back(std::move(other));
    }
    // If no view had the keyboard, choose a view in the center. Dear ImGui would choose the last view that appears.
    for (const auto& open : views_)
        if (focus_in_the_end_.empty() && open->focus && open->kind->dock == Dock::center)
            focus_in_the_end_ = open->title();
    put_away(std::move(before));
    if (!keep_views) restore_put_away(state);
    for (auto& other : also_filled_in) {
        while (is_taken(*other->kind, other->number)) ++other->number;
        put_away_.push_back(std::move(other));
    }
    const std::string windows = stored(state, "windows", std::string());
    ImGui::LoadIniSettingsFromMemory(windows.data(), windows.size());
    note_tab_order();
    wanted_layout_.clear();
    await_places();
}

void OpenViews::note_tab_order() {
    tab_order_.clear();
    bool is_any_new = false;  // whether a view has no tab order yet; then all tabs use the order of views_
    for (const auto& open : views_) {
        const ImGuiID window = ImHashStr(open->title().c_str());
        const ImGuiWindowSettings* saved = ImGui::FindWindowSettingsByID(window);
        is_any_new = is_any_new || (saved && saved->DockId != 0 && saved->DockOrder < 0);
        if (saved && saved->DockOrder >= 0) tab_order_[window] = saved->DockOrder;
    }
    if (!is_any_new) return;
    int place = 0;
    for (const auto& open : views_) tab_order_[ImHashStr(open->title().c_str())] = place++;
}

void OpenViews::restore_put_away(const nlohmann::json& state) {
    const auto saved_views = state.find("put_away");
    if (saved_views == state.end() || !saved_views->is_array()) return;
    for (const auto& saved : *saved_views) {
        const ViewKind* kind = saved.is_object() ? find_view_kind(stored(saved, "kind", std::string())) : nullptr;
        if (!kind || is_taken(*kind, number_of(saved))) continue;
        OpenView& kept = *put_away_.emplace_back(std::make_unique<OpenView>());
        kept.kind = kind;
        kept.number = number_of(saved);
        kept.left_layout = stored(saved, "left_layout", std::string());
        kept.view = kind->create();
        set_state(kept, saved.value("state", nlohmann::json::object()));
    }
}

void OpenViews::build_layout() {
    const Layout alone{view_alone, "", {}, {{only_, "all"}}};
    const Layout* layout = wanted_layout_ == view_alone ? &alone : find_layout(wanted_layout_);
    wanted_layout_.clear();
    if (!layout) return;
    auto before = std::exchange(views_, {});
    if (is_maximised()) {
        for (const auto& saved : before_maximised_["views"]) {
            const ViewKind* kind = find_view_kind(stored(saved, "kind", std::string()));
            if (auto other = kind ? take(put_away_, *kind, number_of(saved)) : nullptr)
                before.push_back(std::move(other));
        }
    }
    before_maximised_ = nullptr;
    is_alone_ = false;
    views_of_later_.clear();
    await_places();
    const Layout* left = find_layout(std::exchange(layout_, layout->name));
    for (const auto& open : before)
        if (left && (open->number > 1 || !left->has(open->kind->name))) open->left_layout = left->name;
    fill(*layout, before);
    put_away(std::move(before));
    for (const auto& open : views_) {
        const bool is_in_middle = std::ranges::any_of(layout->views, [&](const Placed& placed) {
            return placed.place == "all" && placed.kind == open->kind->name;
        });
        if (!is_in_middle) continue;
        focus_in_the_end_ = open->title();
        break;
    }
}

void OpenViews::fill(const Layout& layout, std::vector<std::unique_ptr<OpenView>>& before) {
    const auto places = split_dock_space(dock_space_, layout.cuts);
    std::set<ImGuiID> filled;
    for (const Placed& placed : layout.views) {
        const ViewKind* kind = find_view_kind(placed.kind);
        if (!kind) continue;  // a build without the engine lacks some views
        auto kept = take(before, *kind);
        if (!kept) kept = take(put_away_, *kind);
        OpenView& opened = add(*kind, kept ? kept->number : 1);
        opened.view = kept ? std::move(kept->view) : kind->create();
        opened.focus = filled.insert(places.at(placed.place)).second;
        ImGui::DockBuilderDockWindow(opened.title().c_str(), places.at(placed.place));
    }
    // Docks views that the user added to the layout in the default place of their kind.
    for (auto* from : {&before, &put_away_}) {
        for (auto& kept : *from) {
            if (!kept->view || kept->left_layout != layout.name) continue;
            const auto beside = std::ranges::find_if(layout.views, [&](const Placed& placed) {
                const ViewKind* kind = find_view_kind(placed.kind);
                return kind && kind->dock == kept->kind->dock;
            });
            OpenView& opened = add(*kept->kind, kept->number);
            opened.view = std::move(kept->view);
            ImGui::DockBuilderDockWindow(opened.title().c_str(),
                                         places.at(beside == layout.views.end() ? "all" : beside->place));
        }
        std::erase_if(*from, [](const auto& kept) { return !kept->view; });
    }
    ImGui::DockBuilderFinish(dock_space_);
}

}  // namespace kvscope::gui
