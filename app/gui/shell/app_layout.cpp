#include <fmt/format.h>
#include <imgui.h>
#include <imgui_internal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <climits>
#include <map>
#include <set>
#include <type_traits>
#include <utility>

#include "app/gui/shell/app.h"
#include "app/gui/shell/layouts.h"

namespace kvscope::gui {
namespace {

constexpr int frames_until_settled = 6;
constexpr int most_of_a_kind = 999;
constexpr float most_share = 0.42f;  // that a place takes because large texts need it

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

const std::vector<std::string>& App::layout_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const Layout& layout : layouts()) all.push_back(layout.name);
        return all;
    }();
    return names;
}

void App::apply_layout(const std::string& name) { wanted_layout_ = name; }

OpenView& App::open_view(const ViewKind& kind) {
    int number = 1;
    const auto is_taken = [&](int n) {
        return std::any_of(views_.begin(), views_.end(),
                           [&](const auto& view) { return view->kind == &kind && view->number == n; });
    };
    while (is_taken(number)) ++number;
    auto& opened = *views_.emplace_back(std::make_unique<OpenView>());
    opened.kind = &kind;
    opened.number = number;
    opened.view = kind.create();
    opened.focus = true;
    // A further view of a kind opens as a tab beside the first.
    for (const auto& other : views_) {
        if (other.get() == &opened || (number > 1 && other->kind != &kind) || other->kind->dock != kind.dock) continue;
        if (const ImGuiWindow* beside = ImGui::FindWindowByName(other->title().c_str()); beside && beside->DockId) {
            ImGui::DockBuilderDockWindow(opened.title().c_str(), beside->DockId);
            break;
        }
    }
    return opened;
}

void App::show_view(const ViewKind& kind) {
    start_dismissed_ = true;
    const auto open = std::find_if(views_.begin(), views_.end(), [&](const auto& view) { return view->kind == &kind; });
    OpenView& shown = open == views_.end() ? open_view(kind) : **open;
    shown.focus = true;
    focus_in_the_end_ = shown.title();
}

OpenView* App::focused_view() const {
    for (const auto& view : views_) {
        if (view->id() == focused_) return view.get();
    }
    return nullptr;
}

void App::set_view(OpenView& open, const nlohmann::json& state) {
    try {
        open.view->load(state);
    } catch (const nlohmann::json::exception&) {
        // What cannot be understood stays at its default.
    } catch (const std::exception& error) {
        notice(fmt::format("the view {} cannot be set as it was: {}", open.kind->title, error.what()), true);
    }
}

nlohmann::json App::layout_state() const {
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

void App::restore_layout(const nlohmann::json& state, bool keep_views) {
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
        auto& opened = *views_.emplace_back(std::make_unique<OpenView>());
        opened.kind = kind;
        opened.number = std::clamp(stored(saved, "number", 1), 1, most_of_a_kind);
        opened.focus = stored(saved, "in_front", false);
        const auto kept = std::find_if(before.begin(), before.end(), [&](const auto& open) {
            return keep_views && open->view && open->kind == kind && open->number == opened.number;
        });
        opened.view = kept == before.end() ? kind->create() : std::move((*kept)->view);
        if (opened.id() == keyboard) focus_in_the_end_ = opened.title();
        if (kept != before.end()) continue;
        set_view(opened, saved.value("state", nlohmann::json::object()));
    }
    const std::string windows = stored(state, "windows", std::string());
    ImGui::LoadIniSettingsFromMemory(windows.data(), windows.size());
    wanted_layout_.clear();
    frames_to_settle_ = frames_until_settled;
}

void App::build_layout(unsigned dock_space) {
    const Layout alone{view_alone, "", {}, {{options_.view, "all"}}};
    const Layout* layout = wanted_layout_ == view_alone ? &alone : find_layout(wanted_layout_);
    wanted_layout_.clear();
    if (!layout) return;
    views_.clear();
    views_of_later_.clear();
    frames_to_settle_ = frames_until_settled;
    ImGui::DockBuilderRemoveNode(dock_space);
    ImGui::DockBuilderAddNode(dock_space, ImGuiDockNodeFlags_DockSpace);
    ImGui::DockBuilderSetNodeSize(dock_space, ImGui::GetMainViewport()->WorkSize);
    std::map<std::string, ImGuiID> places{{"all", dock_space}};
    for (const Cut& cut : layout->cuts) {
        ImGuiID rest = 0;
        const ImVec2 size = ImGui::DockBuilderGetNode(places.at(cut.from))->Size;
        const bool is_across = cut.side == ImGuiDir_Left || cut.side == ImGuiDir_Right;
        const float least = cut.least * ImGui::GetFontSize() / std::max(is_across ? size.x : size.y, 1.0f);
        const float share = std::max(cut.share, least);
        if (share > std::max(cut.share, most_share)) {  // no room: its views become tabs
            places[cut.to] = places.at(cut.otherwise.empty() ? cut.from : cut.otherwise);
            continue;
        }
        places[cut.to] = ImGui::DockBuilderSplitNode(places.at(cut.from), cut.side, share, nullptr, &rest);
        places[cut.from] = rest;
    }
    std::set<ImGuiID> filled;
    for (const Placed& placed : layout->views) {
        const ViewKind* kind = find_view_kind(placed.kind);
        if (!kind) continue;  // a build without the engine lacks some
        auto& opened = *views_.emplace_back(std::make_unique<OpenView>());
        opened.kind = kind;
        opened.view = kind->create();
        opened.focus = filled.insert(places.at(placed.place)).second;
        ImGui::DockBuilderDockWindow(opened.title().c_str(), places.at(placed.place));
    }
    ImGui::DockBuilderFinish(dock_space);
    for (const auto& open : views_) {
        const bool is_in_middle = std::any_of(layout->views.begin(), layout->views.end(), [&](const Placed& placed) {
            return placed.place == "all" && placed.kind == open->kind->name;
        });
        if (!is_in_middle) continue;
        focus_in_the_end_ = open->title();
        break;
    }
}

}  // namespace kvscope::gui
