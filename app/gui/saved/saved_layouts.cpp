#include "app/gui/saved/saved_layouts.h"

#include <fmt/format.h>
#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "app/gui/layout/layouts.h"
#include "app/gui/session/stored_json.h"
#include "app/gui/view/text_field.h"
#include "common/lower_case.h"

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;

constexpr const char* layout_key = "kvscope_layout";
constexpr int layout_version = 1;
constexpr const char* save_popup = "Save this layout";
constexpr const char* remove_popup = "Remove a layout";

std::string without_space_around(const std::string& text) {
    const size_t first = text.find_first_not_of(' ');
    return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

bool is_same_name(const std::string& x, const std::string& y) { return lower_case(x) == lower_case(y); }

nlohmann::json places_in(const nlohmann::json& state) {
    nlohmann::json layout = {{"views", nlohmann::json::array()}};
    for (nlohmann::json view : state.value("views", nlohmann::json::array())) {
        if (!view.is_object()) continue;
        view.erase("state");
        layout["views"].push_back(std::move(view));
    }
    for (const char* key : {"windows", "keyboard"})
        if (state.contains(key)) layout[key] = state[key];
    return layout;
}

nlohmann::json layout_in(const fs::path& path) {
    const StoredJson stored = read_stored_json(path, layout_key, layout_version);
    if (stored.state == StoredJson::State::absent) throw std::runtime_error(path.string() + " does not exist");
    if (stored.state != StoredJson::State::sound) throw std::runtime_error(stored.why);
    const auto fail = [&](const char* why) { throw std::runtime_error(path.string() + " is not a layout: " + why); };
    if (!stored.contents.contains(layout_key)) fail("expected kvscope_layout with its version");
    const auto views = stored.contents.find("views");
    if (views == stored.contents.end() || !views->is_array()) fail("expected a list of views");
    const bool has_known = std::ranges::any_of(*views, [](const auto& view) {
        return view.is_object() && view.contains("kind") && view["kind"].is_string() &&
               find_view_kind(view["kind"].template get<std::string>());
    });
    if (!has_known) fail("it contains no view that this version of kvscope knows");
    return stored.contents;
}

}  // namespace

std::string objection_to_layout_name(const std::string& name) {
    if (without_space_around(name).empty()) return "Enter a name.";
    for (const Layout& layout : layouts())
        if (is_same_name(name, layout.name) || is_same_name(name, layout.title))
            return layout.title + " is a built-in layout. Choose another name.";
    const bool has_control = std::ranges::any_of(name, [](unsigned char c) { return c < 0x20; });
    if (has_control || name.find("##") != std::string::npos || name == view_alone)
        return "This name cannot be used. Choose another name.";
    return "";
}

std::vector<std::string> SavedLayouts::names() const {
    std::vector<std::string> all;
    for (const auto& [name, layout] : settings_.layouts) all.push_back(name);
    return all;
}

void SavedLayouts::apply(const std::string& name) {
    const auto found = settings_.layouts.find(name);
    if (found == settings_.layouts.end()) return;
    views_.dismiss_start();
    views_.restore(found->second, true);
    shown_ = name;
}

void SavedLayouts::ask_to_save() {
    typed_ = shown_;
    is_name_wanted_ = true;
}

void SavedLayouts::ask_to_remove(const std::string& name) {
    removed_ = name;
    is_removal_wanted_ = true;
}

void SavedLayouts::ask_to_export() {
    dialog_.ask({FileDialog::Kind::save,
                 "Export this layout",
                 {".json"},
                 shown_.empty() ? "layout.json" : shown_ + ".json",
                 [this](const auto& path) { export_to(path); }});
}

void SavedLayouts::ask_to_import() {
    dialog_.ask(
        {FileDialog::Kind::open, "Import a layout", {".json"}, {}, [this](const auto& path) { import_from(path); }});
}

void SavedLayouts::export_to(const fs::path& path) {
    try {
        nlohmann::json layout = places_in(views_.state());
        layout[layout_key] = layout_version;
        layout["name"] = shown_.empty() ? path.stem().string() : shown_;
        write_stored_json(path, layout);
        notices_.add("layout exported to " + path.string());
    } catch (const std::exception& error) {
        notices_.add(error.what(), true);
    }
}

void SavedLayouts::import_from(const fs::path& path) {
    try {
        const nlohmann::json read = layout_in(path);
        const auto named = read.find("name");
        const std::string whole = named != read.end() && named->is_string() ? named->get<std::string>() : "";
        std::string wanted = without_space_around(whole);
        if (!objection_to_layout_name(wanted).empty()) wanted = path.stem().string();
        if (!objection_to_layout_name(wanted).empty()) wanted = "Imported";
        std::string name = wanted;
        for (int n = 2; settings_.layouts.contains(name); ++n) name = fmt::format("{} {}", wanted, n);
        settings_.layouts[name] = places_in(read);
        apply(name);
        notices_.add(fmt::format("layout {} imported and added to the menu Layout", name));
    } catch (const std::exception& error) {
        notices_.add(error.what(), true);
    }
}

void SavedLayouts::draw() {
    if (std::exchange(is_name_wanted_, false)) ImGui::OpenPopup(save_popup);
    if (std::exchange(is_removal_wanted_, false)) ImGui::OpenPopup(remove_popup);
    for (const char* popup : {save_popup, remove_popup}) {
        if (!ImGui::IsPopupOpen(popup)) continue;
        ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Appearing, {0.5f, 0.5f});
        if (!ImGui::BeginPopup(popup)) continue;
        popup == save_popup ? draw_name_question() : draw_removal();
        ImGui::EndPopup();
    }
}

void SavedLayouts::draw_name_question() {
    ImGui::TextUnformatted("Save the open views and their places in the menu Layout as:");
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(28 * ImGui::GetFontSize());
    const bool is_entered = text_field("##layout name", "layout name", &typed_, ImGuiInputTextFlags_EnterReturnsTrue);
    const std::string name = without_space_around(typed_);
    const std::string objection = objection_to_layout_name(name);
    const bool is_there = settings_.layouts.contains(name);
    if (is_there)
        ImGui::Text("A layout with this name already exists.");
    else
        ImGui::TextDisabled("%s", objection.c_str());
    ImGui::BeginDisabled(!objection.empty());
    const bool is_clicked = ImGui::Button(is_there ? "Replace it" : "Save");
    ImGui::EndDisabled();
    ImGui::SameLine();
    if (ImGui::Button("Cancel") || ImGui::IsKeyPressed(ImGuiKey_Escape)) return ImGui::CloseCurrentPopup();
    if (!objection.empty() || !(is_clicked || (is_entered && !is_there))) return;
    settings_.layouts[name] = places_in(views_.state());
    shown_ = name;
    ImGui::CloseCurrentPopup();
}

void SavedLayouts::draw_removal() {
    ImGui::Text("Remove the layout “%s” from the menu?", removed_.c_str());
    ImGui::TextDisabled("The open views do not change.");
    const bool is_confirmed = ImGui::Button("Remove");
    ImGui::SameLine();
    if (is_confirmed) {
        settings_.layouts.erase(removed_);
        if (shown_ == removed_) shown_.clear();
    }
    if (ImGui::Button("Cancel") || is_confirmed || ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
}

}  // namespace kvscope::gui
