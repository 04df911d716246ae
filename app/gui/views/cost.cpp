#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "analysis/cost_table.h"
#include "analysis/table_format.h"
#include "app/gui/figure_menu.h"
#include "app/gui/file_dialog.h"
#include "app/gui/measures.h"
#include "app/gui/view.h"

namespace kvscope::gui {
namespace {

using analysis::Best;
using analysis::Cell;
using analysis::Column;
using analysis::ColumnType;
using analysis::Table;

constexpr std::array<const char*, 8> hidden_at_first = {
    "run", "policy", "budget", "removed_share", "kl_stderr", "cache_bytes_predicted", "status", "message"};

std::optional<double> number(const Cell& cell) {
    if (const auto* real = std::get_if<double>(&cell); real && !std::isnan(*real)) return *real;
    if (const auto* whole = std::get_if<int64_t>(&cell)) return static_cast<double>(*whole);
    return std::nullopt;
}

std::string text_of(const Column& column, const Cell& cell) {
    if (const auto* word = std::get_if<std::string>(&cell)) return *word;
    const auto value = number(cell);
    if (!value) return std::holds_alternative<std::monostate>(cell) ? "" : "NaN";
    if (column.unit == "B") return bytes_text(*value);
    if (const auto* whole = std::get_if<int64_t>(&cell)) return analysis::format_count(*whole);
    const double step = std::pow(10.0, -column.decimals);
    const bool is_short_time = column.unit == "s" && *value > 0 && *value < step / 2;
    return is_short_time ? fmt::format("< {:.{}f}", step, column.decimals)
                         : analysis::format_real(*value, column.decimals);
}

struct TableRow {
    RunKey run;
    const analysis::Row* row;
};

/// Below zero: a before b. Empty cells are last in either direction.
int compared(const Cell& a, const Cell& b, bool descending) {
    const auto* word_a = std::get_if<std::string>(&a);
    const auto* word_b = std::get_if<std::string>(&b);
    if (word_a && word_b) return descending ? word_b->compare(*word_a) : word_a->compare(*word_b);
    const auto x = number(a);
    const auto y = number(b);
    if (!x || !y) return x ? -1 : y ? 1 : 0;
    if (*x == *y) return 0;
    return (*x < *y) != descending ? -1 : 1;
}

/// The runs of all open traces with what they keep, cost and change.
class CostView : public View {
 public:
    void draw(Context& context) override {
        Session& session = context.session;
        shown_.rows.clear();
        if (session.documents().empty()) {
            draw_nothing(context, "Open a trace or run the demo to compare what the runs cost.");
            return;
        }
        std::vector<std::shared_ptr<const Table>> tables;
        std::vector<TableRow> rows;
        std::string error;
        for (const auto& document : session.documents()) {
            if (document->prompt >= document->reader()->n_prompts()) continue;
            const auto answer = ask_table(session, *document);
            if (!answer.error.empty()) error = answer.error;
            if (!answer.value) continue;
            tables.push_back(answer.value);
            for (size_t i = 0; i < answer.value->rows.size(); ++i) {
                const RunKey key{document->id(), document->prompt, static_cast<int>(i)};
                if (session.exists(key)) rows.push_back({key, &answer.value->rows[i]});
            }
        }
        if (rows.empty()) {
            if (!error.empty())
                draw_error(context, error);
            else
                draw_nothing(context, tables.empty() ? "adding up what the runs cost …"
                                                     : "No run has ended yet: rows appear as they do.");
            return;
        }
        draw_table(context, tables.front()->columns, rows);
    }

    std::optional<Table> table() const override { return shown_.rows.empty() ? std::nullopt : std::optional(shown_); }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"click a row", "select the run"},
                {"click a heading", "sort by it; again turns the order round, a third time is the trace's own"},
                {"right-click a heading", "show and hide columns"},
                {"right-click", "copy or export the table"},
                {"bold", "the best of a column among the runs that are shown"}};
    }

 private:
    static Answer<Table> ask_table(Session& session, const Document& document) {
        std::string stamp = document.stamp();
        for (int run = 0; run < document.reader()->n_runs(document.prompt); ++run)
            stamp += ' ' + session.stamp({document.id(), document.prompt, run});
        return session.tasks.ask<Table>(
            fmt::format("cost table {}", document.id()), stamp,
            [reader = document.reader(), prompt = document.prompt] { return analysis::cost_table(*reader, prompt); });
    }

    void draw_table(Context& context, const std::vector<Column>& columns, std::vector<TableRow>& rows) {
        const auto n_columns = static_cast<int>(columns.size());
        constexpr ImGuiTableFlags flags = ImGuiTableFlags_Sortable | ImGuiTableFlags_SortTristate |
                                          ImGuiTableFlags_Resizable | ImGuiTableFlags_Reorderable |
                                          ImGuiTableFlags_Hideable | ImGuiTableFlags_ScrollX | ImGuiTableFlags_ScrollY |
                                          ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_NoBordersInBody;
        if (!ImGui::BeginTable("runs and costs", n_columns, flags)) return;
        ImGui::TableSetupScrollFreeze(0, 1);
        for (const Column& column : columns) setup_column(column, rows, columns);
        draw_headings(columns);
        sort(rows);

        Table shown;
        const bool several = context.session.documents().size() > 1;
        shown.name = "runs";
        shown.title = "What each run keeps and costs, and how far it moves from the full cache";
        std::vector<int> order;  // as the columns stand
        for (int i = 0; i < n_columns; ++i) {
            if (ImGui::TableGetColumnFlags(i) & ImGuiTableColumnFlags_IsEnabled) order.push_back(i);
        }
        if (several) shown.columns.push_back({"trace", "Trace", "", ColumnType::text});
        for (const int i : order) shown.columns.push_back(columns[static_cast<size_t>(i)]);
        std::vector<double> largest, best;
        for (size_t i = 0; i < columns.size(); ++i) {
            largest.push_back(largest_of(rows, i));
            best.push_back(best_of(context.session, columns[i], rows, i));
        }
        for (const TableRow& row : rows) {
            draw_row(context, columns, row, largest, best);
            analysis::Row copied;
            copied.control = row.row->control;
            if (several) copied.cells.emplace_back(context.session.look(row.run).trace);
            for (const int i : order) copied.cells.push_back(row.row->cells[static_cast<size_t>(i)]);
            shown.rows.push_back(std::move(copied));
        }
        const bool on_heading = ImGui::GetIO().MousePos.y < heading_bottom_;
        ImGui::EndTable();
        if (!on_heading || !ImGui::IsMouseReleased(ImGuiMouseButton_Right))
            draw_table_menu(context, *this, "cost", shown);
        shown_ = std::move(shown);
    }

    static void setup_column(const Column& column, const std::vector<TableRow>& rows,
                             const std::vector<Column>& columns) {
        ImGuiTableColumnFlags flags = 0;
        const auto index = static_cast<size_t>(&column - columns.data());
        const bool is_empty = std::all_of(rows.begin(), rows.end(), [&](const TableRow& row) {
            return std::holds_alternative<std::monostate>(row.row->cells[index]);
        });
        if (is_empty) flags |= ImGuiTableColumnFlags_Disabled;
        const bool hidden = std::any_of(hidden_at_first.begin(), hidden_at_first.end(),
                                        [&](const char* name) { return column.name == name; });
        if (hidden) flags |= ImGuiTableColumnFlags_DefaultHide;
        if (column.name == "label") flags |= ImGuiTableColumnFlags_NoHide;
        if (column.best == Best::highest) flags |= ImGuiTableColumnFlags_PreferSortDescending;
        const std::string name = column.title.empty() ? column.name : column.title;
        const bool with_unit = !column.unit.empty() && column.unit != "B";
        ImGui::TableSetupColumn((with_unit ? fmt::format("{} ({})", name, column.unit) : name).c_str(), flags);
    }

    void draw_headings(const std::vector<Column>& columns) {
        ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
        for (int i = 0; i < static_cast<int>(columns.size()); ++i) {
            if (!ImGui::TableSetColumnIndex(i)) continue;
            ImGui::TableHeader(ImGui::TableGetColumnName(i));
            if (const char* words = measure_definition(columns[static_cast<size_t>(i)].name))
                ImGui::SetItemTooltip("%s", words);
            heading_bottom_ = ImGui::GetItemRectMax().y;
        }
    }

    static void sort(std::vector<TableRow>& rows) {
        const ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
        if (!specs || specs->SpecsCount == 0) return;
        const auto column = static_cast<size_t>(specs->Specs[0].ColumnIndex);
        const bool descending = specs->Specs[0].SortDirection == ImGuiSortDirection_Descending;
        std::stable_sort(rows.begin(), rows.end(), [&](const TableRow& a, const TableRow& b) {
            return compared(a.row->cells[column], b.row->cells[column], descending) < 0;
        });
    }

    static double largest_of(const std::vector<TableRow>& rows, size_t column) {
        double largest = 0;
        for (const TableRow& row : rows) {
            const auto value = number(row.row->cells[column]);
            if (value && std::isfinite(*value)) largest = std::max(largest, *value);
        }
        return largest;
    }

    /// NaN where the column has no best, or all runs look alike.
    static double best_of(const Session& session, const Column& column, const std::vector<TableRow>& rows,
                          size_t index) {
        double best = std::numeric_limits<double>::quiet_NaN();
        if (column.best == Best::none) return best;
        size_t n = 0;
        std::set<std::string> texts;
        for (const TableRow& row : rows) {
            const auto value = number(row.row->cells[index]);
            if (!value || row.row->control || !session.is_visible(row.run)) continue;
            const bool better = column.best == Best::highest ? *value > best : *value < best;
            if (std::isnan(best) || better) best = *value;
            texts.insert(text_of(column, row.row->cells[index]));
            ++n;
        }
        return n > 1 && texts.size() == 1 ? std::numeric_limits<double>::quiet_NaN() : best;
    }

    static void draw_row(Context& context, const std::vector<Column>& columns, const TableRow& row,
                         const std::vector<double>& largest, const std::vector<double>& best) {
        Session& session = context.session;
        const bool visible = session.is_visible(row.run);
        const ImVec4 color = on_ground(session.look(row.run).style.color, context.theme);
        ImGui::PushID(row.run.document);
        ImGui::PushID(row.run.run);
        ImGui::TableNextRow();
        const bool is_hovered = session.hover().run == row.run;
        if (is_hovered) ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg1, packed(context.theme.hover, 0.06f));
        for (size_t i = 0; i < columns.size(); ++i) {
            if (!ImGui::TableSetColumnIndex(static_cast<int>(i))) continue;
            if (columns[i].name == "label") {
                draw_label(context, row, visible, color);
                continue;
            }
            const std::string text = text_of(columns[i], row.row->cells[i]);
            const auto value = number(row.row->cells[i]);
            const bool is_best = value && *value == best[i] && !row.row->control;
            const ImVec2 at = ImGui::GetCursorScreenPos();
            const float width = ImGui::GetContentRegionAvail().x;
            const bool is_number = columns[i].type != ColumnType::text;
            ImGui::PushFont(is_best ? context.fonts.bold : is_number ? context.fonts.mono : nullptr, 0);
            const float length = ImGui::CalcTextSize(text.c_str()).x;
            if (is_number) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(width - length, 0.0f));
            ImGui::PushStyleColor(ImGuiCol_Text,
                                  visible && !row.row->control ? context.theme.ink : context.theme.ink_quiet);
            ImGui::TextUnformatted(text.c_str());
            ImGui::PopStyleColor();
            ImGui::PopFont();
            const bool has_bar = columns[i].type != ColumnType::text && columns[i].name != "run" &&
                                 columns[i].name != "budget" && value && *value > 0 && largest[i] > 0;
            if (!has_bar) continue;
            const float y = at.y + ImGui::GetTextLineHeight();
            const float bar = width * static_cast<float>(std::min(*value / largest[i], 1.0));
            ImGui::GetWindowDrawList()->AddRectFilled({at.x, y}, {at.x + bar, y + 2},
                                                      packed(visible ? color : context.theme.line, 0.7f));
        }
        ImGui::PopID();
        ImGui::PopID();
    }

    static void draw_label(Context& context, const TableRow& row, bool visible, const ImVec4& color) {
        Session& session = context.session;
        const auto& run = session.attributes(row.run);
        const float side = 0.65f * ImGui::GetFontSize();
        const ImVec2 at = ImGui::GetCursorScreenPos();
        ImDrawList* list = ImGui::GetWindowDrawList();
        const ImVec2 from{at.x, at.y + (ImGui::GetTextLineHeight() - side) / 2};
        visible ? list->AddRectFilled(from, {from.x + side, from.y + side}, packed(color))
                : list->AddRect(from, {from.x + side, from.y + side}, packed(color));
        ImGui::SetCursorPosX(ImGui::GetCursorPosX() + 1.6f * side);
        ImGui::PushStyleColor(ImGuiCol_Text, visible ? context.theme.ink : context.theme.ink_quiet);
        const std::string label =
            fmt::format("{}{}##cost row", session.look(row.run).label, run.status == "complete" ? "" : " (failed)");
        if (ImGui::Selectable(label.c_str(), row.run == session.cursor().run,
                              ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap))
            session.select_run(row.run);
        ImGui::PopStyleColor();
        if (!ImGui::IsItemHovered()) return;
        Cursor over;
        over.run = row.run;
        session.set_hover(over);
        if (run.status != "complete") ImGui::SetTooltip("failed: %s", run.message.c_str());
    }

    float heading_bottom_ = 0;
    Table shown_;  ///< as it stands on the screen
};

}  // namespace

ViewKind cost_view() {
    return {"cost", "Cost", "The runs with what they keep and cost and how far they move from the full cache",
            Dock::bottom, []() -> std::unique_ptr<View> { return std::make_unique<CostView>(); }};
}

}  // namespace kvscope::gui
