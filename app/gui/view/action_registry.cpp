#include "app/gui/view/action_registry.h"

#include <imcmd_fuzzy_search.h>
#include <imgui_internal.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "app/gui/view/text_field.h"
#include "common/lower_case.h"

namespace kvscope::gui {
namespace {

bool is_enabled(const Action& action) { return !action.enabled || action.enabled(); }

constexpr std::array<std::pair<ImGuiKey, const char*>, 8> signs = {{{ImGuiKey_LeftBracket, "["},
                                                                    {ImGuiKey_RightBracket, "]"},
                                                                    {ImGuiKey_Comma, ","},
                                                                    {ImGuiKey_Period, "."},
                                                                    {ImGuiKey_Equal, "="},
                                                                    {ImGuiKey_Minus, "-"},
                                                                    {ImGuiKey_LeftArrow, "←"},
                                                                    {ImGuiKey_RightArrow, "→"}}};

bool types_character(ImGuiKeyChord chord) {
    const auto key = static_cast<ImGuiKey>(chord & ~ImGuiMod_Mask_);
    return (chord & (ImGuiMod_Ctrl | ImGuiMod_Alt)) == 0 && ImGui::GetCurrentContext()->KeysMayBeCharInput.TestBit(key);
}

/// Whether the key types a punctuation mark, such as "?" or "[", whose position depends on the keyboard layout.
bool is_sign(ImGuiKeyChord chord) {
    const std::string text = shortcut_text(chord);
    return text.size() == 1 && std::ispunct(static_cast<unsigned char>(text.front()));
}

struct Match {
    const Action* action;
    int score;
};

bool has_word(const std::string& text, const std::string& search) {
    return (" " + lower_case(text)).find(" " + lower_case(search)) != std::string::npos;
}

/// Returns the actions whose names contain the letters of the search in order, with the best match first. Names with a
/// word that begins with the search are the best matches. An empty search matches all actions.
std::vector<Match> matches(const std::vector<Action>& actions, const std::vector<Action>& extra,
                           const std::string& search) {
    std::vector<Match> found;
    for (const auto* list : {&actions, &extra}) {
        for (const Action& action : *list) {
            int score = 0;
            std::array<uint8_t, 64> places{};
            int n_places = 0;
            const std::string text = action.menu + " " + action.name;
            const bool fits = search.empty() || ImCmd::FuzzySearch(search.c_str(), text.c_str(), score, places.data(),
                                                                   static_cast<int>(places.size()), n_places);
            if (!search.empty() && has_word(text, search)) score += 1000;
            if (fits && action.row_keys.empty() && action.run && is_enabled(action)) found.push_back({&action, score});
        }
    }
    std::ranges::stable_sort(found, [](const Match& x, const Match& y) { return x.score > y.score; });
    return found;
}

}  // namespace

bool is_shortcut_pressed(ImGuiKeyChord key) {
    const bool is_down = ImGui::Shortcut(key, ImGuiInputFlags_RouteGlobal | ImGuiInputFlags_RouteOverActive);
    const auto& typed = ImGui::GetIO().InputQueueCharacters;
    if (!is_sign(key) || typed.empty()) return is_down;
    return std::ranges::find(typed, static_cast<ImWchar>(shortcut_text(key).front())) != typed.end();
}

ImGuiKeyChord run_visibility_key(int number) {
    if (number < 1 || number > n_run_keys) return 0;
    constexpr std::array<ImGuiKeyChord, 3> modifiers = {0, ImGuiMod_Shift, ImGuiMod_Ctrl};
    return modifiers[static_cast<size_t>(number - 1) / 9] | (ImGuiKey_1 + (number - 1) % 9);
}

std::string shortcut_text(const Action& action) { return shortcut_text(action.key); }

std::string shortcut_text(ImGuiKeyChord chord) {
    if (!chord) return "";
    const ImGuiKeyChord modifiers = chord & ImGuiMod_Mask_;
    const auto key = static_cast<ImGuiKey>(chord & ~ImGuiMod_Mask_);
    if (modifiers == ImGuiMod_Shift && key == ImGuiKey_Slash) return "?";
    for (const auto& [of, sign] : signs) {
        if (of != key) continue;
        std::string text = modifiers ? ImGui::GetKeyChordName(modifiers) : "";
        if (!text.empty() && text.back() != '+') text += '+';
        return text + sign;
    }
    return ImGui::GetKeyChordName(chord);
}

void Actions::add(Action action) { actions_.push_back(std::move(action)); }

void Actions::start(const Action& action) {
    last_ = action.name;
    if (before_start) before_start(last_);
    try {
        action.run();
    } catch (const std::exception& error) {
        if (!on_failure) throw;
        on_failure(last_, error.what());
    }
}

void Actions::handle_keys(bool is_view_focused) {
    constexpr double seconds_after_text = 1;
    const ImGuiIO& io = ImGui::GetIO();
    const bool is_after_text = ImGui::GetTime() < typed_at_ + seconds_after_text;
    const bool is_typed = io.InputQueueCharacters.Size > 0 || ImGui::IsKeyPressed(ImGuiKey_Backspace) ||
                          ImGui::IsKeyPressed(ImGuiKey_Delete);
    if (is_typed && (io.WantTextInput || is_after_text)) typed_at_ = ImGui::GetTime();
    takes_single_keys_ = is_view_focused && !io.WantTextInput && !is_after_text;
    if (ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel)) return;
    constexpr std::array editing = {ImGuiMod_Ctrl | ImGuiKey_Z, ImGuiMod_Ctrl | ImGuiKey_Y,
                                    ImGuiMod_Alt | ImGuiKey_LeftArrow, ImGuiMod_Alt | ImGuiKey_RightArrow};
    const Action* called = nullptr;
    for (const Action& action : actions_) {
        if (!action.key || !action.run) continue;
        const bool is_plain = (action.key & (ImGuiMod_Ctrl | ImGuiMod_Alt)) == 0;
        if (is_plain && io.WantTextInput) continue;
        if (io.WantTextInput && std::ranges::find(editing, action.key) != editing.end()) continue;
        if (types_character(action.key) && !takes_single_keys_) continue;
        // Checks all actions, because Dear ImGui passes a key only to items that requested it in the previous frame.
        if (is_shortcut_pressed(action.key) && is_enabled(action) && !called) called = &action;
    }
    if (called) start(*called);
}

void Actions::draw_menu(const char* menu) {
    for (const Action& action : actions_) {
        if (action.menu != menu) continue;
        if (action.separator_before) ImGui::Separator();
        const bool chosen = ImGui::MenuItem(action.name.c_str(), shortcut_text(action).c_str(),
                                            action.checked && action.checked(), is_enabled(action));
        if (chosen) {
            start(action);
            return;
        }
    }
}

void Actions::draw_palette() {
    if (palette_wanted_) {
        palette_wanted_ = false;
        extra_.clear();
        if (add_to_palette) add_to_palette(extra_);
        search_.clear();
        before_.clear();
        behind_.clear();
        chosen_ = 0;
        ImGui::OpenPopup("Command palette");
    }
    const ImGuiViewport* viewport = ImGui::GetMainViewport();
    const float em = ImGui::GetFontSize();
    ImGui::SetNextWindowPos({viewport->GetCenter().x, viewport->WorkPos.y + 3 * em}, ImGuiCond_Always, {0.5f, 0});
    ImGui::SetNextWindowSize({std::min(42 * em, viewport->WorkSize.x - 2 * em), 0});
    if (!ImGui::BeginPopup("Command palette")) return;
    if (ImGui::IsKeyPressed(ImGuiKey_Escape))
        ImGui::CloseCurrentPopup();  // otherwise the search field takes the first Escape
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(-FLT_MIN);
    if (text_field("##search", "What do you want to do?", &search_)) {
        chosen_ = 0;
        before_.clear();
        behind_.clear();
        if (add_for_search && !search_.empty()) add_for_search(search_, before_, behind_);
    }
    std::vector<Match> found = matches(actions_, extra_, search_);
    for (auto action = before_.rbegin(); action != before_.rend(); ++action) found.insert(found.begin(), {&*action, 0});
    for (const Action& action : behind_) found.push_back({&action, 0});
    const int n = static_cast<int>(found.size());
    if (ImGui::IsKeyPressed(ImGuiKey_DownArrow)) ++chosen_;
    if (ImGui::IsKeyPressed(ImGuiKey_UpArrow)) --chosen_;
    chosen_ = n == 0 ? 0 : (chosen_ + n) % n;
    const Action* wanted = nullptr;
    ImGui::Spacing();
    const float padding = ImGui::GetStyle().FramePadding.x;
    ImGui::BeginChild("found",
                      {0, std::min(14.0f, static_cast<float>(std::max(n, 1)) + 0.5f) * ImGui::GetFrameHeight()});
    for (int i = 0; i < n; ++i) {
        const Action& action = *found[static_cast<size_t>(i)].action;
        ImGui::PushID(i);
        if (ImGui::Selectable("##action", i == chosen_, 0, {0, ImGui::GetFontSize() + 4})) wanted = &action;
        if (i == chosen_ && !ImGui::IsItemVisible()) ImGui::SetScrollHereY();
        if (!action.menu.empty()) {
            ImGui::SameLine(padding);
            ImGui::TextDisabled("%s", action.menu.c_str());
        }
        ImGui::SameLine(padding + 4 * em);
        ImGui::TextUnformatted(action.name.c_str());
        const std::string key = shortcut_text(action);
        if (!key.empty()) {
            ImGui::SameLine(ImGui::GetContentRegionMax().x - ImGui::CalcTextSize(key.c_str()).x - padding);
            ImGui::TextDisabled("%s", key.c_str());
        }
        ImGui::PopID();
    }
    if (n == 0) ImGui::TextDisabled("no matching command");
    ImGui::EndChild();
    if (n > 0 && ImGui::IsKeyPressed(ImGuiKey_Enter)) wanted = found[static_cast<size_t>(chosen_)].action;
    if (wanted) {
        const Action action = *wanted;
        ImGui::CloseCurrentPopup();
        start(action);
    }
    ImGui::EndPopup();
}

}  // namespace kvscope::gui
