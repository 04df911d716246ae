#include "app/gui/tokens/token_tooltip.h"

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_internal.h>

#include <algorithm>

#include "analysis/tables/table_format.h"
#include "app/gui/drawing/run_marks.h"
#include "app/gui/drawing/shaped_text.h"
#include "app/gui/view/run_label.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/measure_definitions.h"

namespace kvscope::gui {

void draw_shared_character(const PromptText& prompt, size_t token) {
    const std::string_view whole = whole_characters_of_tokens(prompt, token, token);
    if (whole.size() == prompt.begins[token + 1] - prompt.begins[token]) return;
    ImGui::PushStyleColor(ImGuiCol_Text, ImGui::GetStyleColorVec4(ImGuiCol_TextDisabled));
    text_item("in " + shown_token(whole));
    ImGui::PopStyleColor();
    ImGui::SameLine();
}

void draw_token_line(Context& context, const Document& document, int64_t token) {
    const auto prompt = prompt_text(context.session, document);
    const auto t = static_cast<size_t>(token);
    ImGui::PushFont(context.fonts.mono, 0);
    text_item(prompt && t < prompt->shown.size() ? prompt->shown[t] : "…");
    ImGui::PopFont();
    ImGui::SameLine();
    ImGui::TextDisabled("token %s", analysis::format_count(token).c_str());
}

namespace {

constexpr size_t most_runs = 6;

std::vector<RunKey> told_first(const PromptColumn& one, std::vector<RunKey> runs) {
    std::erase_if(runs,
                  [&](const RunKey& key) { return key.document != one.run.document || key.prompt != one.run.prompt; });
    std::stable_partition(runs.begin(), runs.end(), [&](const RunKey& key) { return key == one.run; });
    return runs;
}

void draw_where_kept(Context& context, const PromptColumn& one, const std::vector<RunKey>& runs, int64_t token) {
    bool any = false;
    const float room = ImGui::GetCurrentWindow()->DC.TextWrapPos - ImGui::GetCursorPosX();
    const float least_beside = 10 * ImGui::GetFontSize();
    const size_t n_shown = std::min(runs.size(), most_runs);
    const bool are_beside =
        std::ranges::all_of(runs.begin(), runs.begin() + static_cast<ptrdiff_t>(n_shown), [&](const RunKey& run) {
            return ImGui::CalcTextSize(context.session.look(run).label.c_str()).x + least_beside <= room;
        });
    for (size_t i = 0; i < n_shown; ++i) {
        const auto answer = token_retention_counts(context.session, runs[i]);
        if (!answer.value) continue;
        const RunLook look = context.session.look(runs[i]);
        const bool is_pointed_at = runs[i] == one.run;
        draw_inline_run_marker(context.theme, look.style);
        if (is_pointed_at) ImGui::PushFont(context.fonts.bold, 0);
        const float left = ImGui::GetCursorPosX();
        ImGui::TextUnformatted(shorten_run_label(look.label, ImGui::GetCurrentWindow()->DC.TextWrapPos - left).c_str());
        if (is_pointed_at) ImGui::PopFont();
        if (are_beside)
            ImGui::SameLine();
        else
            ImGui::SetCursorPosX(left);
        ImGui::TextDisabled("%s", describe_where_kept(*answer.value->kept, token).c_str());
        any = true;
    }
    if (!any) return;
    if (runs.size() > most_runs) ImGui::TextDisabled("and %zu more runs in Inspector", runs.size() - most_runs);
    ImGui::TextDisabled("%s", measure_definition("layers"));
}

}  // namespace

void draw_token_tooltip(Context& context, const PromptColumn& one, const std::vector<RunKey>& runs, int64_t token) {
    const auto t = static_cast<size_t>(token);
    begin_tooltip_beside();
    text_item(one.prompt->shown[t]);
    ImGui::SameLine();
    draw_shared_character(*one.prompt, t);
    ImGui::PushFont(context.fonts.text, 0);
    const int64_t n_visible = one.document->reader()->prompt(one.document->prompt).visible_tokens();
    ImGui::TextDisabled(
        "token %s · id %d%s", analysis::format_count(token).c_str(), one.prompt->ids[t],
        token >= n_visible ? " · after the compressed part: always kept and not counted in the budget" : "");
    if (const Note* note = note_at_token(*one.document, token)) ImGui::TextUnformatted(note->text.c_str());
    if (token < n_visible) draw_where_kept(context, one, told_first(one, runs), token);
    ImGui::PopFont();
    end_tooltip_beside();
}

}  // namespace kvscope::gui
