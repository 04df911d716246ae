#include "app/gui/inspector/token_in_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/tables/number_text.h"
#include "analysis/tables/table_format.h"
#include "app/gui/drawing/shaped_text.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/measure_definitions.h"

namespace kvscope::gui {

namespace {

using analysis::TokenDecision;
using analysis::TokenReport;

/// Returns a head's score / cut-off, or NaN if the score is missing or negative, or the cut-off is not positive.
double ratio(const TokenDecision& d) {
    return d.candidate && d.cut_off > 0 && d.score >= 0 ? d.score / d.cut_off : TokenDecision::nothing;
}

/// Draws one chart with a value per layer. @param value height of the bar in [0, 1], or NaN for no bar
template <class Value, class Text>
void sparkline(Context& context, const char* id, const std::string& title, size_t n, ImU32 color, float reference,
               Value value, Text text) {
    Session& session = context.session;
    quiet_text(title);
    const float width = std::max(ImGui::GetContentRegionAvail().x, 20.0f);
    const float height = 2.6f * ImGui::GetFontSize();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::InvisibleButton(id, {width, height});
    ImDrawList* list = ImGui::GetWindowDrawList();
    list->AddRectFilled(at, {at.x + width, at.y + height}, packed(context.theme.ground));
    const float each = width / static_cast<float>(n);
    const auto band = [&](int layer, ImU32 of) {
        if (layer < 0 || static_cast<size_t>(layer) >= n) return;
        const float x = at.x + each * static_cast<float>(layer);
        list->AddRectFilled({x, at.y}, {x + each, at.y + height}, of);
    };
    band(session.cursor().layer, packed(context.theme.accent, 0.3f));
    band(session.hover().layer, packed(context.theme.hover, 0.15f));
    for (size_t layer = 0; layer < n; ++layer) {
        const float share = value(layer);
        if (std::isnan(share)) continue;
        const float x = at.x + each * static_cast<float>(layer);
        const float top = at.y + height * (1 - std::clamp(share, 0.0f, 1.0f));
        list->AddRectFilled({x, std::min(top, at.y + height - 1)}, {x + std::max(each - 1, 1.0f), at.y + height},
                            color);
    }
    if (reference > 0) {
        const float y = at.y + height * (1 - reference);
        list->AddLine({at.x, y}, {at.x + width, y}, packed(context.theme.ink_quiet));
    }
    const bool is_dragged = ImGui::IsItemActive();
    if (!is_dragged && !ImGui::IsItemHovered()) return;
    const auto layer =
        static_cast<size_t>(std::clamp((ImGui::GetMousePos().x - at.x) / each, 0.0f, static_cast<float>(n - 1)));
    Cursor over = session.cursor();
    over.layer = static_cast<int>(layer);
    over.kv_head = over.query_head = -1;
    session.set_hover(over);
    if (is_dragged && session.cursor().layer != static_cast<int>(layer))
        session.selection.select_layer(static_cast<int>(layer));
    ImGui::SetTooltip("layer %zu: %s", layer, text(layer).c_str());
}

}  // namespace

void draw_layer_charts(Context& context, const TokenReport& report, ImU32 color, const std::string& measure) {
    const auto kept_heads = [&](size_t layer) {
        size_t n = 0;
        for (size_t r = 0; r < report.n_rows; ++r) n += report.at(layer, r).kept;
        return n;
    };
    const auto entries = [&](size_t layer) {
        double sum = 0;
        for (size_t r = 0; r < report.n_rows; ++r) sum += report.at(layer, r).entries();
        return sum;
    };
    sparkline(
        context, "##inspector kept", fmt::format("heads that keep it (of {}), by layer →", report.n_rows),
        report.n_layers, color, 0,
        [&](size_t layer) { return static_cast<float>(entries(layer) / static_cast<double>(report.n_rows)); },
        [&](size_t layer) {
            const size_t heads = kept_heads(layer);
            const bool is_shared = entries(layer) < static_cast<double>(heads);
            return fmt::format("kept by {} of {} heads{}\n{}", heads, report.n_rows,
                               is_shared ? fmt::format(", as {} entries", analysis::format_number(entries(layer))) : "",
                               measure_definition("retention"));
        });
    if (!report.has_scores) {
        wrapped_text("the trace has no scores of this run", context.theme.ink_quiet);
        return;
    }
    const auto best = [&](size_t layer) {
        double most = TokenDecision::nothing;
        for (size_t r = 0; r < report.n_rows; ++r) {
            const double here = ratio(report.at(layer, r));
            if (!(most >= here)) most = here;
        }
        return most;
    };
    double low = 1;
    double high = 1;
    for (size_t layer = 0; layer < report.n_layers; ++layer) {
        const double here = best(layer);
        if (!(here > 0)) continue;
        low = std::min(low, here);
        high = std::max(high, here);
    }
    if (low == high) return;  // the token was forced in everywhere
    // The axis is logarithmic, because scores differ by orders of magnitude, and covers at most 0.001 to 1,000.
    const double bottom = std::log(std::max(low, 1e-3)) - 0.05;
    const double top = std::log(std::min(high, 1e3)) + 0.05;
    const auto share = [&](double quotient) {
        return quotient > 0 ? static_cast<float>((std::log(quotient) - bottom) / (top - bottom)) : 0.0f;
    };
    sparkline(
        context, "##inspector scores", "score / cut-off of the best head (log)", report.n_layers,
        packed(context.theme.accent, 0.8f), share(1.0),
        [&](size_t layer) {
            const double here = best(layer);
            return std::isnan(here) ? std::numeric_limits<float>::quiet_NaN() : share(here);
        },
        [&](size_t layer) {
            const double here = best(layer);
            return std::isnan(here)
                       ? std::string("not ranked")
                       : fmt::format("best head: {} times the cut-off\n{}", analysis::format_number(here), measure);
        });
}

using analysis::Table;

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

namespace {

using analysis::Border;

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
        ImGui::TextUnformatted("0 %");
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
