#include "app/gui/inspector/entries_at_cut_off.h"

#include <fmt/format.h>
#include <imgui.h>

#include <cmath>

#include "analysis/tables/number_text.h"
#include "analysis/tables/table_format.h"
#include "app/gui/drawing/shaped_text.h"

namespace kvscope::gui {
namespace {

using analysis::Border;
using analysis::Table;
using analysis::TokenDecision;

constexpr size_t n_entries = 5;  // entries on each side of the cut-off

void draw_entry(Context& context, const PromptText& prompt, const InspectedToken& asked, const Border::Entry& entry,
                double cut_off, int digits, bool kept) {
    ImGui::PushID(static_cast<int>(entry.token));
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    if (!kept) ImGui::PushStyleColor(ImGuiCol_Text, context.theme.ink_quiet);
    if (ImGui::Selectable(fmt::format("{}##border", analysis::format_count(static_cast<int64_t>(entry.rank))).c_str(),
                          entry.token == asked.token, ImGuiSelectableFlags_SpanAllColumns)) {
        Cursor cursor = context.session.cursor();
        cursor.run = asked.run;
        cursor.first_token = cursor.last_token = entry.token;
        context.session.selection.set(cursor);
    }
    if (ImGui::IsItemHovered() && !asked.is_hover) {
        Cursor over = context.session.cursor();
        over.run = asked.run;
        over.first_token = over.last_token = entry.token;
        context.session.set_hover(over);
        ImGui::SetTooltip("token %s, %s: click to select it", analysis::format_count(entry.token).c_str(),
                          kept ? "kept" : "dropped");
    }
    ImGui::TableNextColumn();
    ImGui::PushFont(context.fonts.mono, 0.9f * ImGui::GetStyle().FontSizeBase);
    text_item(entry.token < prompt.shown.size() ? prompt.shown[entry.token] : std::string("…"));
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(analysis::format_number(entry.score, digits).c_str());
    ImGui::TableNextColumn();
    const double share = (entry.score - cut_off) / std::abs(cut_off);
    if (entry.score == cut_off)
        ImGui::TextUnformatted(kept ? "the cut-off" : "equal");
    else if (std::isfinite(share))
        ImGui::TextUnformatted(analysis::format_change(share).c_str());
    ImGui::PopFont();
    if (!kept) ImGui::PopStyleColor();
    ImGui::PopID();
}

Table table_of_border(const Border& border, double cut_off, const PromptText& prompt, int layer, int row,
                      const std::string& run) {
    using analysis::ColumnType;
    Table table{"border",
                fmt::format("Entries at the cut-off of layer {}, head {} of {}", layer, row, run),
                {{"rank", "Rank", "", ColumnType::integer},
                 {"kept", "Kept", ""},
                 {"token", "Token", "", ColumnType::integer},
                 {"text", "Text", ""},
                 {"score", "Score", "", ColumnType::real, 6},
                 {"margin", "Margin", "%", ColumnType::real, 3}},
                {}};
    for (const auto* side : {&border.kept, &border.dropped}) {
        for (const auto& entry : *side) {
            const double margin = 100 * (entry.score - cut_off) / std::abs(cut_off);
            table.rows.push_back(
                {{static_cast<int64_t>(entry.rank), std::string(side == &border.kept ? "kept" : "dropped"),
                  int64_t{entry.token}, entry.token < prompt.tokens.size() ? prompt.tokens[entry.token] : std::string(),
                  entry.score, std::isfinite(margin) ? analysis::Cell(margin) : analysis::Cell()}});
        }
    }
    return table;
}

}  // namespace

Table draw_entries_at_cut_off(Context& context, const TaskSlot<Border>& slot, const PromptText& prompt,
                              const InspectedToken& asked, int layer, int row) {
    const auto answer = context.session.tasks.ask(
        slot, "", fmt::format("{} {} {}", context.session.stamp(asked.run), layer, row),
        [at = context.session.at(asked.run), layer, row](const std::stop_token& stop) {
            return analysis::find_tokens_near_cut_off(at.reader->with_stop(stop), at.prompt, at.run,
                                                      static_cast<size_t>(layer), static_cast<size_t>(row), n_entries);
        });
    if (!answer.current || !answer.value || (answer.value->kept.empty() && answer.value->dropped.empty())) return {};
    const Border& at_border = *answer.value;
    ImGui::Spacing();
    ImGui::TextDisabled("entries at the cut-off of head %d", row);
    constexpr ImGuiTableFlags flags = ImGuiTableFlags_SizingStretchProp;
    if (!ImGui::BeginTable("border", 4, flags)) return {};
    // In a narrow view the token column shrinks first, so that numbers are not cut off.
    ImGui::TableSetupColumn("rank", ImGuiTableColumnFlags_WidthFixed);
    ImGui::TableSetupColumn("token", ImGuiTableColumnFlags_WidthStretch);
    ImGui::TableSetupColumn("score", ImGuiTableColumnFlags_WidthFixed);
    ImGui::TableSetupColumn("margin", ImGuiTableColumnFlags_WidthFixed);
    ImGui::TableHeadersRow();
    const double cut_off = at_border.kept.empty() ? TokenDecision::nothing : at_border.kept.back().score;
    const double best_loser = at_border.dropped.empty() ? TokenDecision::nothing : at_border.dropped.front().score;
    const int digits = analysis::count_distinguishing_digits(cut_off, best_loser);
    for (const auto& entry : at_border.kept) draw_entry(context, prompt, asked, entry, cut_off, digits, true);
    ImGui::TableNextRow(ImGuiTableRowFlags_None, 3);
    ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg0, packed(context.theme.accent, 0.7f));
    for (const auto& entry : at_border.dropped) draw_entry(context, prompt, asked, entry, cut_off, digits, false);
    ImGui::EndTable();
    return table_of_border(at_border, cut_off, prompt, layer, row, context.session.look(asked.run).label);
}

}  // namespace kvscope::gui
