#include <imgui.h>
#include <imgui_internal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <climits>
#include <set>
#include <type_traits>
#include <utility>

#include "app/gui/shell/dock_places.h"
#include "app/gui/shell/layouts.h"
#include "app/gui/shell/open_views.h"

namespace kvscope::gui {
namespace {

constexpr int most_of_a_kind = 999;

/// What stands under a key, or the default where it is absent or of another type.
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

}  // namespace

nlohmann::json OpenViews::state() const {
    nlohmann::json views = nlohmann::json::array();
    for (const auto& open : views_) {
        nlohmann::json state = nlohmann::json::object();
        try {
            open->view->save(state);
        } catch (const std::exception& error) {  // every frame asks; what the view has written by then is kept
            spdlog::debug("the view {} does not say how it is set: {}", open->kind->title, error.what());
        }
        const ImGuiWindow* window = ImGui::FindWindowByName(open->title().c_str());
        const bool in_front = window && (!window->DockIsActive || window->DockTabIsVisible);
        views.push_back(
            {{"kind", open->kind->name}, {"number", open->number}, {"in_front", in_front}, {"state", state}});
    }
    for (const auto& view : views_of_later_) views.push_back(view);
    return {{"views", views}, {"keyboard", focused_}, {"windows", ImGui::SaveIniSettingsToMemory()}};
}

void OpenViews::restore(const nlohmann::json& state, bool keep_views) {
    if (!state.is_object() || !state.contains("views") || !state["views"].is_array()) return;
    const auto before = std::exchange(views_, {});
    views_of_later_.clear();
    const std::string keyboard = stored(state, "keyboard", std::string());
    for (const auto& saved : state["views"]) {
        if (!saved.is_object() || !saved.contains("kind") || !saved["kind"].is_string()) continue;
        const ViewKind* kind = find_view_kind(saved["kind"].get<std::string>());
        if (!kind) {
            views_of_later_.push_back(saved);
            continue;
        }
        OpenView& opened = add(*kind);
        opened.number = std::clamp(stored(saved, "number", 1), 1, most_of_a_kind);
        opened.focus = stored(saved, "in_front", false);
        const auto kept = std::find_if(before.begin(), before.end(), [&](const auto& open) {
            return keep_views && open->view && open->kind == kind && open->number == opened.number;
        });
        opened.view = kept == before.end() ? kind->create() : std::move((*kept)->view);
        if (opened.id() == keyboard) focus_in_the_end_ = opened.title();
        if (kept != before.end()) continue;
        set_state(opened, saved.value("state", nlohmann::json::object()));
    }
    const std::string windows = stored(state, "windows", std::string());
    ImGui::LoadIniSettingsFromMemory(windows.data(), windows.size());
    wanted_layout_.clear();
    await_places();
}

void OpenViews::build_layout() {
    const Layout alone{view_alone, "", {}, {{only_, "all"}}};
    const Layout* layout = wanted_layout_ == view_alone ? &alone : find_layout(wanted_layout_);
    wanted_layout_.clear();
    if (!layout) return;
    views_.clear();
    views_of_later_.clear();
    await_places();
    fill(*layout);
    // The keyboard goes to the first view in the middle.
    for (const auto& open : views_) {
        const bool is_in_middle = std::any_of(layout->views.begin(), layout->views.end(), [&](const Placed& placed) {
            return placed.place == "all" && placed.kind == open->kind->name;
        });
        if (!is_in_middle) continue;
        focus_in_the_end_ = open->title();
        break;
    }
}

void OpenViews::fill(const Layout& layout) {
    const auto places = cut_into_places(dock_space_, layout.cuts);
    std::set<ImGuiID> filled;
    for (const Placed& placed : layout.views) {
        const ViewKind* kind = find_view_kind(placed.kind);
        if (!kind) continue;  // a build without the engine lacks some
        OpenView& opened = add(*kind);
        opened.view = kind->create();
        opened.focus = filled.insert(places.at(placed.place)).second;
        ImGui::DockBuilderDockWindow(opened.title().c_str(), places.at(placed.place));
    }
    ImGui::DockBuilderFinish(dock_space_);
}

}  // namespace kvscope::gui
