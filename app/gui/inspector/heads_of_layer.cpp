#include "app/gui/inspector/heads_of_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/tables/number_text.h"
#include "analysis/tables/table_format.h"

namespace kvscope::gui {

using analysis::Table;
using analysis::TokenDecision;
using analysis::TokenReport;

void draw_heads_of_layer(Context& context, const Document& document, const TokenReport& report, int layer, int chosen,
                         ImU32 color, const std::string& measure) {
    constexpr ImGuiTableFlags flags =
        ImGuiTableFlags_SizingStretchProp | ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_ScrollY;
    const float line = ImGui::GetTextLineHeightWithSpacing();
    const float height = std::min(static_cast<float>(report.n_rows + 1) * (line + 2) + 4, 10 * line);
    ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(ImGui::GetStyle().CellPadding.x / 2, 2));
    const bool is_drawn = ImGui::BeginTable("heads", 4, flags, {0, height});
    ImGui::PopStyleVar();
    if (!is_drawn) return;
    ImGui::TableSetupScrollFreeze(0, 1);
    ImGui::TableSetupColumn(report.query_heads ? "head" : "KV head");
    ImGui::TableSetupColumn("score");
    ImGui::TableSetupColumn("rank");
    ImGui::TableSetupColumn("cut-off");
    ImGui::TableHeadersRow();
    const auto& model = document.reader()->model();
    const auto group = static_cast<int>(std::max<int64_t>(model.n_heads / std::max<int64_t>(model.n_kv_heads, 1), 1));
    for (size_t r = 0; r < report.n_rows; ++r) {
        const TokenDecision& d = report.at(static_cast<size_t>(layer), r);
        const int row = static_cast<int>(r);
        ImGui::TableNextRow();
        ImGui::TableNextColumn();
        // A square means kept, a dash dropped. A hollow mark would mean a hidden run.
        const float side = 0.65f * ImGui::GetFontSize();
        const ImVec2 at = ImGui::GetCursorScreenPos();
        if (ImGui::Selectable(fmt::format("##head {}", row).c_str(), row == chosen,
                              ImGuiSelectableFlags_SpanAllColumns)) {
            report.query_heads ? context.session.selection.select_head(layer, row / group, row)
                               : context.session.selection.select_head(layer, row);
        }
        ImGui::SetItemTooltip("%s\n%s", report.sentence(static_cast<size_t>(layer), r).c_str(), measure.c_str());
        ImDrawList* list = ImGui::GetWindowDrawList();
        const ImVec2 from{at.x + 0.2f * side, at.y + (ImGui::GetTextLineHeight() - side) / 2};
        const ImVec2 to{from.x + side, from.y + side};
        const ImVec2 middle{from.x, (from.y + to.y) / 2 - 1};
        d.kept ? list->AddRectFilled(from, to, color) : list->AddRectFilled(middle, {to.x, middle.y + 2}, color);
        list->AddText({to.x + 0.6f * side, at.y}, packed(context.theme.ink), std::to_string(row).c_str());
        ImGui::PushFont(context.fonts.mono, 0.9f * ImGui::GetStyle().FontSizeBase);
        const int digits = analysis::count_distinguishing_digits(d.score, d.cut_off);
        ImGui::TableNextColumn();
        ImGui::TextUnformatted(analysis::format_number(d.score, digits).c_str());
        ImGui::TableNextColumn();
        ImGui::TextUnformatted(d.candidate ? analysis::format_count(static_cast<int64_t>(d.rank)).c_str()
                               : d.forced() && report.has_scores ? "forced in"
                                                                 : "–");
        ImGui::TableNextColumn();
        ImGui::TextUnformatted(analysis::format_number(d.cut_off, digits).c_str());
        ImGui::PopFont();
    }
    ImGui::EndTable();
}

Table heads_table(const TokenReport& report, size_t layer, const std::string& run) {
    using analysis::ColumnType;
    Table table{"heads",
                fmt::format("Token {} in layer {} of {}", report.token, layer, run),
                {{"head", report.query_heads ? "Query head" : "KV head", "", ColumnType::integer},
                 {"kept", "Kept", ""},
                 {"score", "Score", "", ColumnType::real, 6},
                 {"rank", "Rank", "", ColumnType::integer},
                 {"candidates", "Candidates", "", ColumnType::integer},
                 {"cut_off", "Cut-off", "", ColumnType::real, 6}},
                {}};
    const auto real = [](double value) { return std::isnan(value) ? analysis::Cell() : analysis::Cell(value); };
    for (size_t r = 0; r < report.n_rows; ++r) {
        const TokenDecision& d = report.at(layer, r);
        const auto if_ranked = [&](size_t value) {
            return d.candidate ? analysis::Cell(static_cast<int64_t>(value)) : analysis::Cell();
        };
        table.rows.push_back({{static_cast<int64_t>(r), analysis::fate_text(d.fate), real(d.score), if_ranked(d.rank),
                               if_ranked(d.n_candidates), real(d.cut_off)}});
    }
    return table;
}

}  // namespace kvscope::gui
