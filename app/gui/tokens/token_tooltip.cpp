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

constexpr size_t most_runs = 6;

/// The next tooltip left or right of the current window where there is room, else in its width beside the mouse: below
/// or above the line that is pointed at and its neighbours, where the window goes on further.
/// @param size of the tooltip, as it was last
void place_beside_line(ImVec2 size) {
    const float gap = 0.4f * ImGui::GetFontSize();
    const float away = 3 * ImGui::GetTextLineHeightWithSpacing();
    const ImVec2 from = ImGui::GetWindowPos();
    const ImVec2 to{from.x + ImGui::GetWindowWidth(), from.y + ImGui::GetWindowHeight()};
    const ImGuiViewport& viewport = *ImGui::GetMainViewport();
    const ImVec2 end{viewport.Pos.x + viewport.Size.x, viewport.Pos.y + viewport.Size.y};
    const ImVec2 mouse = ImGui::GetMousePos();
    ImVec2 at;
    if (end.x - to.x >= size.x + gap) {
        at = {to.x + gap, mouse.y};
    } else if (from.x - viewport.Pos.x >= size.x + gap) {
        at = {from.x - gap - size.x, mouse.y};
    } else {
        const bool fits_below = mouse.y + away + size.y <= end.y;
        const bool fits_above = mouse.y - away - size.y >= viewport.Pos.y;
        const bool is_below = fits_below && (to.y - mouse.y >= mouse.y - from.y || !fits_above);
        const float within = std::max(to.x - size.x, from.x);  // not over the views beside this one
        at = {std::min(mouse.x + gap, within), is_below ? mouse.y + away : mouse.y - away - size.y};
    }
    at.x = std::clamp(at.x, viewport.Pos.x, std::max(end.x - size.x, viewport.Pos.x));
    at.y = std::clamp(at.y, viewport.Pos.y, std::max(end.y - size.y, viewport.Pos.y));
    ImGui::SetNextWindowPos(at);
}

/// Of this prompt, the one that is pointed at first.
std::vector<RunKey> told_first(const PromptColumn& one, std::vector<RunKey> runs) {
    std::erase_if(runs,
                  [&](const RunKey& key) { return key.document != one.run.document || key.prompt != one.run.prompt; });
    std::stable_partition(runs.begin(), runs.end(), [&](const RunKey& key) { return key == one.run; });
    return runs;
}

/// Where the first runs keep the token, and how many there are more.
void draw_where_kept(Context& context, const PromptColumn& one, const std::vector<RunKey>& runs, int64_t token) {
    bool any = false;
    for (size_t i = 0; i < std::min(runs.size(), most_runs); ++i) {
        const auto answer = prompt_counts(context.session, runs[i]);
        if (!answer.value) continue;
        const RunLook look = context.session.look(runs[i]);
        const bool is_pointed_at = runs[i] == one.run;
        run_chip(context.theme, look.style);
        if (is_pointed_at) ImGui::PushFont(context.fonts.bold, 0);
        ImGui::TextUnformatted(look.label.c_str());
        if (is_pointed_at) ImGui::PopFont();
        ImGui::SameLine();
        ImGui::TextDisabled("%s", where_kept(*answer.value->kept, token).c_str());
        any = true;
    }
    if (!any) return;
    if (runs.size() > most_runs) ImGui::TextDisabled("and %zu more runs: Inspector has all", runs.size() - most_runs);
    ImGui::PushTextWrapPos(30 * ImGui::GetFontSize());
    ImGui::TextDisabled("%s", measure_definition("layers"));
    ImGui::PopTextWrapPos();
}

}  // namespace

void draw_token_tooltip(Context& context, const PromptColumn& one, const std::vector<RunKey>& runs, int64_t token) {
    const auto t = static_cast<size_t>(token);
    ImGuiStorage& known = *ImGui::GetStateStorage();
    const ImGuiID width = ImGui::GetID("tooltip width"), height = ImGui::GetID("tooltip height");
    const float em = ImGui::GetFontSize();
    place_beside_line({known.GetFloat(width, 30 * em), known.GetFloat(height, 10 * em)});
    ImGui::BeginTooltip();
    text_item(one.prompt->shown[t]);
    ImGui::SameLine();
    draw_shared_character(*one.prompt, t);
    ImGui::PushFont(context.fonts.text, 0);
    const int64_t n_visible = one.document->reader()->prompt(one.document->prompt).visible_tokens();
    ImGui::TextDisabled("token %s · id %d%s", analysis::format_count(token).c_str(), one.prompt->ids[t],
                        token >= n_visible ? " · after what policies saw: kept whole, in no budget" : "");
    if (const Note* note = note_at(*one.document, token)) {
        ImGui::PushTextWrapPos(30 * ImGui::GetFontSize());
        ImGui::TextUnformatted(note->text.c_str());
        ImGui::PopTextWrapPos();
    }
    if (token < n_visible) draw_where_kept(context, one, told_first(one, runs), token);
    ImGui::PopFont();
    known.SetFloat(width, ImGui::GetWindowWidth());
    known.SetFloat(height, ImGui::GetWindowHeight());
    ImGui::EndTooltip();
}

}  // namespace kvscope::gui
