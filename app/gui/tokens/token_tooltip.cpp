#include "app/gui/tokens/token_tooltip.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "analysis/tables/table_format.h"
#include "app/gui/drawing/run_marks.h"
#include "app/gui/drawing/shaped_text.h"
#include "app/gui/session/measures.h"

namespace kvscope::gui {

void draw_shared_character(const PromptText& prompt, size_t token) {
    const std::string_view whole = whole_characters(prompt, token, token);
    if (whole.size() == prompt.begins[token + 1] - prompt.begins[token]) return;
    ImGui::PushStyleColor(ImGuiCol_Text, ImGui::GetStyleColorVec4(ImGuiCol_TextDisabled));
    text_item("in " + shown_token(whole));
    ImGui::PopStyleColor();
    ImGui::SameLine();
}

namespace {

/// The next tooltip where it covers nothing of the current window's text: left or right of it, or in the corner away
/// from the mouse.
/// @param size of the tooltip, as it was last
void place_beside_window(ImVec2 size) {
    const float gap = 0.4f * ImGui::GetFontSize();
    const ImVec2 from = ImGui::GetWindowPos();
    const ImVec2 to{from.x + ImGui::GetWindowWidth(), from.y + ImGui::GetWindowHeight()};
    const ImGuiViewport& viewport = *ImGui::GetMainViewport();
    const float right = viewport.Pos.x + viewport.Size.x - to.x;
    const float left = from.x - viewport.Pos.x;
    const float above = from.y - viewport.Pos.y;
    const float below = viewport.Pos.y + viewport.Size.y - to.y;
    const ImVec2 mouse = ImGui::GetMousePos();
    ImVec2 at;
    if (right >= size.x + gap)
        at = {to.x + gap, mouse.y};
    else if (left >= size.x + gap)
        at = {from.x - gap - size.x, mouse.y};
    else if (below >= size.y + gap)
        at = {mouse.x, to.y + gap};
    else if (above >= size.y + gap)
        at = {mouse.x, from.y - gap - size.y};
    else  // in the corner that the mouse is not in
        at = {mouse.x > (from.x + to.x) / 2 ? from.x : to.x - size.x,
              mouse.y > (from.y + to.y) / 2 ? from.y : to.y - size.y};
    at.x = std::clamp(at.x, viewport.Pos.x, std::max(viewport.Pos.x + viewport.Size.x - size.x, viewport.Pos.x));
    at.y = std::clamp(at.y, viewport.Pos.y, std::max(viewport.Pos.y + viewport.Size.y - size.y, viewport.Pos.y));
    ImGui::SetNextWindowPos(at);
}

}  // namespace

void draw_token_tooltip(Context& context, const PromptColumn& one, const std::vector<RunKey>& runs, int64_t token) {
    const auto t = static_cast<size_t>(token);
    ImGuiStorage& known = *ImGui::GetStateStorage();
    const ImGuiID width = ImGui::GetID("tooltip width"), height = ImGui::GetID("tooltip height");
    const float em = ImGui::GetFontSize();
    place_beside_window({known.GetFloat(width, 30 * em), known.GetFloat(height, 10 * em)});
    ImGui::BeginTooltip();
    text_item(one.prompt->shown[t]);
    ImGui::SameLine();
    draw_shared_character(*one.prompt, t);
    ImGui::PushFont(context.fonts.text, 0);
    ImGui::TextDisabled("token %s · id %d%s", analysis::format_count(token).c_str(), one.prompt->ids[t],
                        token >= one.document->reader()->prompt(one.document->prompt).visible_tokens()
                            ? " · after what policies saw: kept whole, in no budget"
                            : "");
    if (const Note* note = note_at(*one.document, token)) {
        ImGui::PushTextWrapPos(30 * ImGui::GetFontSize());
        ImGui::TextUnformatted(note->text.c_str());
        ImGui::PopTextWrapPos();
    }
    bool any = false;
    for (const RunKey& key : runs) {
        if (key.document != one.run.document || key.prompt != one.run.prompt) continue;
        const Document* document = context.session.document(key);
        if (token >= document->reader()->prompt(key.prompt).visible_tokens()) break;
        const auto answer = prompt_counts(context.session, key);
        if (!answer.value) continue;
        const RunLook look = context.session.look(key);
        run_chip(context.theme, look.style);
        if (key == one.run) ImGui::PushFont(context.fonts.bold, 0);
        ImGui::TextUnformatted(look.label.c_str());
        if (key == one.run) ImGui::PopFont();
        ImGui::SameLine();
        ImGui::TextDisabled("%s", where_kept(*answer.value->kept, token).c_str());
        any = true;
    }
    if (any) {
        ImGui::PushTextWrapPos(30 * ImGui::GetFontSize());
        ImGui::TextDisabled("%s", measure_definition("layers"));
        ImGui::PopTextWrapPos();
    }
    ImGui::PopFont();
    known.SetFloat(width, ImGui::GetWindowWidth());
    known.SetFloat(height, ImGui::GetWindowHeight());
    ImGui::EndTooltip();
}

}  // namespace kvscope::gui
