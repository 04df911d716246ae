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
void place_beside_window() {
    const float em = ImGui::GetFontSize();
    const float least = 16 * em;
    const float gap = 0.4f * em;
    const ImVec2 from = ImGui::GetWindowPos();
    const ImVec2 to{from.x + ImGui::GetWindowWidth(), from.y + ImGui::GetWindowHeight()};
    const ImGuiViewport& viewport = *ImGui::GetMainViewport();
    const float right = viewport.Pos.x + viewport.Size.x - to.x;
    const float left = from.x - viewport.Pos.x;
    const float y = ImGui::GetMousePos().y;
    const float down = std::clamp((y - viewport.Pos.y) / viewport.Size.y, 0.0f, 1.0f);
    if (right >= least && right >= left)
        ImGui::SetNextWindowPos({to.x + gap, y}, ImGuiCond_Always, {0, down});
    else if (left >= least)
        ImGui::SetNextWindowPos({from.x - gap, y}, ImGuiCond_Always, {1, down});
    else if (y > (from.y + to.y) / 2)
        ImGui::SetNextWindowPos({to.x - gap, from.y + gap}, ImGuiCond_Always, {1, 0});
    else
        ImGui::SetNextWindowPos({to.x - gap, to.y - gap}, ImGuiCond_Always, {1, 1});
}

}  // namespace

void draw_token_tooltip(Context& context, const PromptColumn& one, const std::vector<RunKey>& runs, int64_t token) {
    const auto t = static_cast<size_t>(token);
    place_beside_window();
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
    if (any) ImGui::TextDisabled("%s", measure_definition("layers"));
    ImGui::PopFont();
    ImGui::EndTooltip();
}

}  // namespace kvscope::gui
