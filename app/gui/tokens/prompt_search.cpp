#include "app/gui/tokens/prompt_search.h"

#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "app/gui/view/text_field.h"

namespace kvscope::gui {

void PromptSearch::draw(Context& context, const Document& document) {
    const float em = ImGui::GetFontSize();
    constexpr ImGuiInputFlags route = ImGuiInputFlags_RouteGlobal | ImGuiInputFlags_RouteOverActive;
    if (ImGui::Shortcut(ImGuiMod_Ctrl | ImGuiKey_F, route)) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(9 * em);
    const bool entered = text_field("##prompt search", "search  (Ctrl+F)", &context.session.search,
                                    ImGuiInputTextFlags_EnterReturnsTrue);
    if (entered) ImGui::SetKeyboardFocusHere(-1);
    const TokenSpans& found = matches(context, document);
    const bool forward = entered || ImGui::Shortcut(ImGuiKey_F3, route);
    const bool back = ImGui::Shortcut(ImGuiMod_Shift | ImGuiKey_F3, route);
    if (forward || back) wanted_ = back ? Wanted::last : Wanted::next;
    if (found_ || context.session.search.empty()) {  // Enter may have been pressed before the matches were known
        if (!found.empty() && wanted_ != Wanted::none) go_to(context, document, found, wanted_ == Wanted::last);
        wanted_ = Wanted::none;
    }
    if (context.session.search.empty()) return;
    ImGui::SameLine(0, 0.5f * em);
    if (found.empty())
        ImGui::TextDisabled("%s", found_ ? "no match" : "…");
    else if (match_ < found.size())
        ImGui::TextDisabled("%zu of %zu", match_ + 1, found.size());
    else
        ImGui::TextDisabled(found.size() == 1 ? "%zu match" : "%zu matches", found.size());
}

const TokenSpans& PromptSearch::matches(Context& context, const Document& document) {
    static const TokenSpans none;
    found_ = searched_spans(context.session, document);
    if (found_ && std::exchange(counted_, found_) != found_) match_ = std::string::npos;
    return found_ ? *found_ : none;
}

void PromptSearch::go_to(Context& context, const Document& document, const TokenSpans& found, bool back) {
    if (match_ < found.size()) {
        match_ = (match_ + (back ? found.size() - 1 : 1)) % found.size();
    } else {
        const int64_t from = context.session.cursor().first_token;
        const auto next = std::lower_bound(found.begin(), found.end(), from,
                                           [](const auto& span, int64_t t) { return span.first < t; });
        match_ = next == found.end() ? 0 : static_cast<size_t>(next - found.begin());
    }
    Cursor cursor = context.session.selection.cursor_in(document.id(), document.prompt);
    std::tie(cursor.first_token, cursor.last_token) = found[match_];
    context.session.selection.set(cursor);
}

}  // namespace kvscope::gui
