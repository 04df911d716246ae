#include "app/gui/layout/view_picker.h"

#include <fmt/format.h>
#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "app/gui/view/text_field.h"
#include "app/gui/view/view.h"
#include "app/gui/view/widgets.h"
#include "common/lower_case.h"

namespace kvscope::gui {
namespace {

constexpr const char* popup = "Open a view";
constexpr std::array<std::pair<Topic, const char*>, 5> topics = {{{Topic::runs, "Runs and models"},
                                                                  {Topic::tokens, "Tokens of the prompt"},
                                                                  {Topic::heads, "Layers and heads"},
                                                                  {Topic::results, "Answers and measures"},
                                                                  {Topic::files, "Files and messages"}}};

bool fits(const ViewKind& kind, const std::string& search) {
    const std::string text = lower_case(kind.title + " " + kind.summary);
    std::istringstream words(lower_case(search));
    for (std::string word; words >> word;)
        if (text.find(word) == std::string::npos) return false;
    return true;
}

std::vector<const ViewKind*> kinds_for(const std::string& search) {
    std::vector<const ViewKind*> found;
    for (const auto& [topic, heading] : topics)
        for (const ViewKind& kind : view_kinds())
            if (kind.topic == topic && fits(kind, search)) found.push_back(&kind);
    return found;
}

const ViewKind* best_of(const std::vector<const ViewKind*>& found, const std::string& search) {
    const std::string typed = lower_case(search);
    const auto named = std::ranges::find_if(
        found, [&](const ViewKind* kind) { return !typed.empty() && lower_case(kind->title).starts_with(typed); });
    if (named != found.end()) return *named;
    return found.empty() ? nullptr : found.front();
}

bool is_open(const ViewKind& kind, const OpenViews& views) {
    return std::ranges::any_of(views.all(), [&](const auto& open) { return open->kind == &kind; });
}

void draw_lines(ImDrawList& list, ImFont* font, float size, ImVec2 at, ImVec2 room, ImU32 color,
                const std::string& text) {
    const char* from = text.data();
    const char* const end = from + text.size();
    const float step = 1.2f * size;
    for (float y = 0; from < end && y + size <= room.y; y += step) {
        const char* to = font->CalcWordWrapPosition(size, from, end, room.x);
        if (to == from) to = from + 1;
        const bool is_last = y + step + size > room.y;
        const std::string line = std::string(from, to) + (is_last && to < end ? " …" : "");
        list.AddText(font, size, {at.x, at.y + y}, color, line.c_str());
        for (from = to; from < end && *from == ' ';) ++from;
    }
}

struct Card {
    const ViewKind& kind;
    bool is_open;
    bool is_chosen;
};

bool draw_card(const Card& card, ImVec2 size, const Theme& theme, const Fonts& fonts) {
    const float em = ImGui::GetFontSize(), inset = 0.5f * em;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const bool is_clicked = ImGui::Selectable(fmt::format("##{}", card.kind.title).c_str(), card.is_chosen,
                                              ImGuiSelectableFlags_NoAutoClosePopups, size);
    item_tooltip(card.kind.summary);
    ImDrawList& list = *ImGui::GetWindowDrawList();
    const ImVec2 picture{6 * em, 3 * em};
    list.AddRectFilled({at.x + inset - 3, at.y + inset - 3},
                       {at.x + inset + picture.x + 3, at.y + inset + picture.y + 3}, packed(theme.ground), 3);
    draw_sketch(list, card.kind.sketch, {at.x + inset, at.y + inset}, picture, theme);
    const ImVec2 text{at.x + picture.x + 2.4f * inset, at.y + 0.3f * em};
    const float room = at.x + size.x - inset - text.x;
    list.AddText(fonts.bold, em, text, packed(theme.ink), card.kind.title.c_str());
    if (card.is_open) {
        const float small = 0.8f * em;
        const float width = fonts.text->CalcTextSizeA(small, FLT_MAX, 0, "open").x;
        list.AddText(fonts.text, small, {text.x + room - width, text.y + 0.1f * em}, packed(theme.accent), "open");
    }
    draw_lines(list, fonts.text, 0.85f * em, {text.x, text.y + 1.3f * em}, {room, size.y - 1.6f * em},
               packed(theme.ink_quiet), card.kind.summary);
    return is_clicked;
}

}  // namespace

void ViewPicker::take_arrow_keys(const std::vector<const ViewKind*>& found, int n_columns) {
    int step = 0;
    if (ImGui::IsKeyPressed(ImGuiKey_DownArrow)) step = n_columns;
    if (ImGui::IsKeyPressed(ImGuiKey_UpArrow)) step = -n_columns;
    if (ImGui::IsKeyPressed(ImGuiKey_RightArrow)) step = 1;
    if (ImGui::IsKeyPressed(ImGuiKey_LeftArrow)) step = -1;
    if (step == 0 || found.empty()) return;
    const auto at = static_cast<int>(std::ranges::find(found, chosen_) - found.begin());
    chosen_ = found[static_cast<size_t>(std::clamp(at + step, 0, static_cast<int>(found.size()) - 1))];
    follows_chosen_ = true;
}

const ViewKind* ViewPicker::draw_kinds(const OpenViews& views, const Theme& theme, const Fonts& fonts) {
    const auto found = kinds_for(search_);
    const float em = ImGui::GetFontSize(), gap = 0.4f * em;
    const float room = ImGui::GetContentRegionAvail().x;
    const int n_columns = std::max(1, static_cast<int>((room + gap) / (18 * em + gap)));
    const float n = static_cast<float>(n_columns);
    const ImVec2 size{(room - (n - 1) * gap) / n, 4 * em};
    take_arrow_keys(found, n_columns);
    const ViewKind* clicked = nullptr;
    for (const auto& [topic, heading] : topics) {
        int column = 0;
        for (const ViewKind* kind : found) {
            if (kind->topic != topic) continue;
            if (column == 0) ImGui::TextDisabled("%s", heading);
            if (column % n_columns != 0) ImGui::SameLine(0, gap);
            ++column;
            if (draw_card({*kind, is_open(*kind, views), kind == chosen_}, size, theme, fonts)) clicked = kind;
            if (kind == chosen_ && std::exchange(follows_chosen_, false) && !ImGui::IsItemVisible())
                ImGui::SetScrollHereY();
        }
    }
    if (found.empty()) ImGui::TextDisabled("no view matches the search");
    if (clicked) return clicked;
    return ImGui::IsKeyPressed(ImGuiKey_Enter) && !found.empty() ? chosen_ : nullptr;
}

void ViewPicker::draw_footer(const Theme& theme) const {
    ImGui::PushStyleColor(ImGuiCol_Text, theme.ink_quiet);
    ImGui::TextUnformatted("Enter or click: show the view.  Shift: open another one.");
    ImGui::PopStyleColor();
}

void ViewPicker::draw(Actions& actions, const OpenViews& views, const Theme& theme, const Fonts& fonts) {
    if (std::exchange(is_wanted_, false)) {
        search_.clear();
        chosen_ = best_of(kinds_for(search_), search_);
        ImGui::OpenPopup(popup);
    }
    const ImGuiViewport* viewport = ImGui::GetMainViewport();
    const float em = ImGui::GetFontSize();
    const ImVec2 most{viewport->WorkSize.x - 2 * em, viewport->WorkSize.y - 2 * em};
    ImGui::SetNextWindowPos({viewport->GetCenter().x, viewport->WorkPos.y + em}, ImGuiCond_Always, {0.5f, 0});
    ImGui::SetNextWindowSize({std::min(78 * em, most.x), std::min(47 * em, most.y)});
    if (!ImGui::BeginPopup(popup)) return;
    if (ImGui::IsKeyPressed(ImGuiKey_Escape))
        ImGui::CloseCurrentPopup();  // otherwise the search field takes the first Escape
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(-FLT_MIN);
    if (text_field("##view search", "Search in titles and descriptions", &search_))
        chosen_ = best_of(kinds_for(search_), search_);
    ImGui::BeginChild("kinds", {0, -ImGui::GetTextLineHeightWithSpacing()}, 0, ImGuiWindowFlags_NoNav);
    const ViewKind* wanted = draw_kinds(views, theme, fonts);
    ImGui::EndChild();
    draw_footer(theme);
    if (wanted) {
        ImGui::CloseCurrentPopup();
        const std::string name = (ImGui::GetIO().KeyShift ? "New view: " : "Show ") + wanted->title;
        const auto& all = actions.all();
        const auto action = std::ranges::find_if(all, [&](const Action& each) { return each.name == name; });
        if (action != all.end()) actions.start(*action);
    }
    ImGui::EndPopup();
}

}  // namespace kvscope::gui
