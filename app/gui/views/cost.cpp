#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "analysis/cost_difference.h"
#include "analysis/cost_table.h"
#include "analysis/table_format.h"
#include "app/gui/comparison.h"
#include "app/gui/figure_menu.h"
#include "app/gui/file_dialog.h"
#include "app/gui/measures.h"
#include "app/gui/view.h"

namespace kvscope::gui {
namespace {

using analysis::Best;
using analysis::Cell;
using analysis::Change;
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

/// Whether nothing of a difference is seen in the digits of its column.
bool is_unseen(const Column& column, double difference) {
    const double step = column.type == ColumnType::integer ? 1 : std::pow(10.0, -column.decimals);
    return std::abs(difference) < step / 2;
}

/// In the digits of its column with its sign, which zero has not.
std::string difference_text(const Column& column, const Cell& cell) {
    const auto value = number(cell);
    if (!value) return "";
    const double size = is_unseen(column, *value) ? 0 : std::abs(*value);
    const std::string text = column.unit == "B"                   ? bytes_text(size)
                             : column.type == ColumnType::integer ? analysis::format_count(std::llround(size))
                                                                  : fmt::format("{:.{}f}", size, column.decimals);
    return size == 0 ? text : (*value > 0 ? "+" : "−") + text;
}

/// A column of the table of runs, or what two runs differ by in it.
struct ShownColumn {
    Column column;
    size_t of = 0;  ///< column of the table of runs
    bool is_difference = false;
    bool is_hidden_at_first = false;
};

/// A run, or A − B of two.
struct TableRow {
    RunKey run;  ///< not valid: A − B
    const analysis::Row* row = nullptr;
    std::vector<Cell> cells;  ///< one for each ShownColumn
    std::string pinned;       ///< "A", "B", "A − B": stands above the others
};

/// Okabe and Ito's green and vermilion, which colour-blind eyes tell apart.
ImVec4 color_of(Change change, const Theme& theme) {
    const float darker = theme.brightness == Brightness::light ? 0.78f : 1.12f;
    if (change == Change::better) return {0, darker * 0.62f, darker * 0.45f, 1};
    if (change == Change::worse) return {darker * 0.835f, darker * 0.369f, darker * 0.08f, 1};
    return theme.ink_quiet;
}

/// Below zero: a before b. Empty cells are last in either direction.
int order_of(const Cell& a, const Cell& b, bool descending) {
    const auto* word_a = std::get_if<std::string>(&a);
    const auto* word_b = std::get_if<std::string>(&b);
    if (word_a && word_b) return descending ? word_b->compare(*word_a) : word_a->compare(*word_b);
    const auto x = number(a);
    const auto y = number(b);
    if (!x || !y) return x ? -1 : y ? 1 : 0;
    if (*x == *y) return 0;
    return (*x < *y) != descending ? -1 : 1;
}

/// The runs of all open traces with what they keep, cost and change, and their differences.
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
                if (session.exists(key)) rows.push_back({key, &answer.value->rows[i], {}, {}});
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
        choose_comparison("cost", session, automatic, comparison_);
        const Compared compared = resolve(session, comparison_, automatic, false);
        const std::vector<ShownColumn> columns = columns_for(tables.front()->columns, compared);
        fill_cells(columns, compared, rows);
        if (compared.kind == Comparison::Kind::runs) pin(columns, compared, rows);
        draw_table(context, columns, compared, rows);
    }

    std::optional<Table> table() const override { return shown_.rows.empty() ? std::nullopt : std::optional(shown_); }

    void save(nlohmann::json& state) const override { save_comparison(state, comparison_); }
    void load(const nlohmann::json& state) override { load_comparison(state, comparison_); }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"click a row", "select the run"},
                {"click a heading", "sort by it; again turns the order round, a third time is the trace's own"},
                {"right-click a heading", "show and hide columns"},
                {"two − one",
                 "of two traces: behind each number, under Δ, what it is more or less than the same run's in "
                 "the other; green is better, orange worse; Δ sorts, too"},
                {"A − B", "A, B and their difference stand above the other runs"},
                {"right-click", "copy or export the table"},
                {"bold", "the best of a column among the runs that are shown"}};
    }

 private:
    static constexpr AutomaticComparison automatic = AutomaticComparison::traces_or_runs;

    static Answer<Table> ask_table(Session& session, const Document& document) {
        std::string stamp = document.stamp();
        for (int run = 0; run < document.reader()->n_runs(document.prompt); ++run)
            stamp += ' ' + session.stamp({document.id(), document.prompt, run});
        return session.tasks.ask<Table>(
            fmt::format("cost table {}", document.id()), stamp,
            [reader = document.reader(), prompt = document.prompt] { return analysis::cost_table(*reader, prompt); });
    }

    /// Of two traces with a column of differences behind each number.
    static std::vector<ShownColumn> columns_for(const std::vector<Column>& all, const Compared& compared) {
        std::vector<ShownColumn> columns;
        for (size_t i = 0; i < all.size(); ++i) {
            const bool is_hidden = std::any_of(hidden_at_first.begin(), hidden_at_first.end(),
                                               [&](const char* name) { return all[i].name == name; });
            columns.push_back({all[i], i, false, is_hidden});
            if (compared.kind == Comparison::Kind::traces && analysis::has_difference(all[i]))
                columns.push_back({analysis::difference_column(all[i]), i, true, is_hidden});
            if (columns.back().is_difference) columns.back().column.best = all[i].best;
        }
        return columns;
    }

    static const TableRow* find(const std::vector<TableRow>& rows, const RunKey& run) {
        const auto found = std::find_if(rows.begin(), rows.end(), [&](const TableRow& row) { return row.run == run; });
        return found == rows.end() ? nullptr : &*found;
    }

    static void fill_cells(const std::vector<ShownColumn>& columns, const Compared& compared,
                           std::vector<TableRow>& rows) {
        for (TableRow& row : rows) {
            const ComparedRuns* pair = compared.of(row.run);
            const TableRow* less = pair ? find(rows, pair->b) : nullptr;
            for (const ShownColumn& column : columns) {
                const Cell& own = row.row->cells[column.of];
                if (!column.is_difference)
                    row.cells.push_back(own);
                else
                    row.cells.push_back(less ? analysis::difference_of(own, less->row->cells[column.of]) : Cell());
            }
        }
    }

    /// A, B and A − B become the first rows.
    static void pin(const std::vector<ShownColumn>& columns, const Compared& compared, std::vector<TableRow>& rows) {
        const ComparedRuns& pair = compared.pairs.front();
        const TableRow* const found_a = find(rows, pair.a);
        const TableRow* const found_b = find(rows, pair.b);
        if (!found_a || !found_b) return;
        TableRow a = *found_a;
        TableRow b = *found_b;
        TableRow difference;
        difference.pinned = "A − B";
        for (size_t i = 0; i < columns.size(); ++i) {
            difference.cells.push_back(
                analysis::has_difference(columns[i].column) ? analysis::difference_of(a.cells[i], b.cells[i]) : Cell());
        }
        a.pinned = "A";
        b.pinned = "B";
        std::erase_if(rows, [&](const TableRow& row) { return row.run == pair.a || row.run == pair.b; });
        rows.insert(rows.begin(), {std::move(a), std::move(b), std::move(difference)});
    }

    void draw_table(Context& context, const std::vector<ShownColumn>& columns, const Compared& compared,
                    std::vector<TableRow>& rows) {
        const auto n_columns = static_cast<int>(columns.size());
        constexpr ImGuiTableFlags flags = ImGuiTableFlags_Sortable | ImGuiTableFlags_SortTristate |
                                          ImGuiTableFlags_Resizable | ImGuiTableFlags_Reorderable |
                                          ImGuiTableFlags_Hideable | ImGuiTableFlags_ScrollX | ImGuiTableFlags_ScrollY |
                                          ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_NoBordersInBody;
        const bool has_differences = compared.kind == Comparison::Kind::traces;
        if (!ImGui::BeginTable(has_differences ? "runs and differences" : "runs and costs", n_columns, flags)) return;
        const auto n_pinned =
            std::count_if(rows.begin(), rows.end(), [](const auto& row) { return !row.pinned.empty(); });
        ImGui::TableSetupScrollFreeze(0, 1 + static_cast<int>(n_pinned));
        for (const ShownColumn& column : columns) setup_column(column, rows, columns);
        draw_headings(columns, compared);
        sort(rows);
        std::vector<double> largest, best;
        for (size_t i = 0; i < columns.size(); ++i) {
            largest.push_back(largest_of(rows, i));
            best.push_back(columns[i].is_difference ? std::numeric_limits<double>::quiet_NaN()
                                                    : best_of(context.session, columns[i].column, rows, i));
        }
        for (const TableRow& row : rows) draw_row(context, columns, compared, row, largest, best);
        Table shown = as_table(context.session, columns, rows, n_pinned > 0);
        const bool on_heading = ImGui::GetIO().MousePos.y < heading_bottom_;
        ImGui::EndTable();
        if (!on_heading || !ImGui::IsMouseReleased(ImGuiMouseButton_Right))
            draw_table_menu(context, *this, "cost", shown);
        shown_ = std::move(shown);
    }

    /// What stands on the screen, within BeginTable and EndTable.
    static Table as_table(const Session& session, const std::vector<ShownColumn>& columns,
                          const std::vector<TableRow>& rows, bool with_pinned) {
        Table table;
        const bool several = session.documents().size() > 1;
        table.name = "runs";
        table.title = "What each run keeps and costs, and how far it moves from the full cache";
        std::vector<size_t> order;
        for (size_t i = 0; i < columns.size(); ++i) {
            if (ImGui::TableGetColumnFlags(static_cast<int>(i)) & ImGuiTableColumnFlags_IsEnabled) order.push_back(i);
        }
        if (with_pinned) table.columns.push_back({"compared", "Compared", "", ColumnType::text});
        if (several) table.columns.push_back({"trace", "Trace", "", ColumnType::text});
        for (const size_t i : order) {
            table.columns.push_back(columns[i].column);
            if (columns[i].is_difference) table.columns.back().best = Best::none;
        }
        for (const TableRow& row : rows) {
            analysis::Row& copied = table.rows.emplace_back();
            copied.control = !row.row || row.row->control;
            if (with_pinned) copied.cells.emplace_back(row.pinned);
            if (several) copied.cells.emplace_back(row.run.valid() ? session.look(row.run).trace : std::string());
            for (const size_t i : order) copied.cells.push_back(row.cells[i]);
        }
        return table;
    }

    static void setup_column(const ShownColumn& shown, const std::vector<TableRow>& rows,
                             const std::vector<ShownColumn>& columns) {
        const Column& column = shown.column;
        ImGuiTableColumnFlags flags = 0;
        const auto index = static_cast<size_t>(&shown - columns.data());
        const bool is_empty = std::all_of(rows.begin(), rows.end(), [&](const TableRow& row) {
            return std::holds_alternative<std::monostate>(row.cells[index]);
        });
        if (is_empty) flags |= ImGuiTableColumnFlags_Disabled;
        if (shown.is_hidden_at_first) flags |= ImGuiTableColumnFlags_DefaultHide;
        if (column.name == "label") flags |= ImGuiTableColumnFlags_NoHide;
        if (column.best == Best::highest) flags |= ImGuiTableColumnFlags_PreferSortDescending;
        const std::string name = column.title.empty() ? column.name : column.title;
        const bool with_unit = !column.unit.empty() && column.unit != "B" && !shown.is_difference;
        ImGui::TableSetupColumn((with_unit ? fmt::format("{} ({})", name, column.unit) : name).c_str(), flags);
    }

    void draw_headings(const std::vector<ShownColumn>& columns, const Compared& compared) {
        ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
        for (int i = 0; i < static_cast<int>(columns.size()); ++i) {
            if (!ImGui::TableSetColumnIndex(i)) continue;
            const ShownColumn& shown = columns[static_cast<size_t>(i)];
            if (shown.is_difference) {
                ImGui::TableHeader(fmt::format("Δ##{}", shown.column.name).c_str());
                const char* direction = shown.column.best == Best::highest  ? "; more is better"
                                        : shown.column.best == Best::lowest ? "; less is better"
                                                                            : "";
                ImGui::SetItemTooltip("%s",
                                      fmt::format("{}: {}{}", shown.column.title, compared.title, direction).c_str());
            } else {
                ImGui::TableHeader(ImGui::TableGetColumnName(i));
                if (const char* words = measure_definition(shown.column.name)) ImGui::SetItemTooltip("%s", words);
            }
            heading_bottom_ = ImGui::GetItemRectMax().y;
        }
    }

    /// What is pinned stays where it is.
    static void sort(std::vector<TableRow>& rows) {
        const ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
        if (!specs || specs->SpecsCount == 0) return;
        const auto column = static_cast<size_t>(specs->Specs[0].ColumnIndex);
        const bool descending = specs->Specs[0].SortDirection == ImGuiSortDirection_Descending;
        const auto first = std::find_if(rows.begin(), rows.end(), [](const auto& row) { return row.pinned.empty(); });
        std::stable_sort(first, rows.end(), [&](const TableRow& a, const TableRow& b) {
            return order_of(a.cells[column], b.cells[column], descending) < 0;
        });
    }

    static double largest_of(const std::vector<TableRow>& rows, size_t column) {
        double largest = 0;
        for (const TableRow& row : rows) {
            const auto value = number(row.cells[column]);
            if (row.run.valid() && value && std::isfinite(*value)) largest = std::max(largest, *value);
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
            if (!row.run.valid() || row.row->control || !session.is_visible(row.run)) continue;
            const auto value = number(row.cells[index]);
            if (!value) continue;
            const bool better = column.best == Best::highest ? *value > best : *value < best;
            if (std::isnan(best) || better) best = *value;
            texts.insert(text_of(column, row.cells[index]));
            ++n;
        }
        return n > 1 && texts.size() == 1 ? std::numeric_limits<double>::quiet_NaN() : best;
    }

    static void draw_row(Context& context, const std::vector<ShownColumn>& columns, const Compared& compared,
                         const TableRow& row, const std::vector<double>& largest, const std::vector<double>& best) {
        Session& session = context.session;
        const bool is_run = row.run.valid();
        const bool visible = !is_run || session.is_visible(row.run);
        const bool is_quiet = !visible || (is_run && row.row->control);
        const ImVec4 color = is_run ? on_ground(session.look(row.run).style.color, context.theme) : context.theme.line;
        ImGui::PushID(row.run.document);
        ImGui::PushID(row.run.run);
        ImGui::TableNextRow();
        if (is_run && session.hover().run == row.run)
            ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg1, packed(context.theme.hover, 0.06f));
        if (!row.pinned.empty())
            ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg0, packed(context.theme.hover, is_run ? 0.03f : 0.07f));
        for (size_t i = 0; i < columns.size(); ++i) {
            if (!ImGui::TableSetColumnIndex(static_cast<int>(i))) continue;
            const Column& column = columns[i].column;
            if (column.name == "label") {
                is_run ? draw_label(context, row, visible, color) : ImGui::TextUnformatted(row.pinned.c_str());
                continue;
            }
            const bool is_difference = columns[i].is_difference || !is_run;
            const std::string text =
                is_difference ? difference_text(column, row.cells[i]) : text_of(column, row.cells[i]);
            const auto value = number(row.cells[i]);
            const bool is_best = value && *value == best[i] && is_run && !row.row->control;
            const ImVec2 at = ImGui::GetCursorScreenPos();
            const float width = ImGui::GetContentRegionAvail().x;
            const bool is_number = column.type != ColumnType::text;
            ImGui::PushFont(is_best ? context.fonts.bold : is_number ? context.fonts.mono : nullptr, 0);
            const float length = ImGui::CalcTextSize(text.c_str()).x;
            if (is_number) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(width - length, 0.0f));
            ImVec4 ink = is_quiet ? context.theme.ink_quiet : context.theme.ink;
            if (is_difference) {
                const bool is_seen = value && !is_unseen(column, *value);
                ink = color_of(is_seen ? analysis::change_of(column, row.cells[i]) : Change::none, context.theme);
                if (!is_seen) ink.w *= 0.6f;
            }
            ImGui::PushStyleColor(ImGuiCol_Text, ink);
            ImGui::TextUnformatted(text.c_str());
            ImGui::PopStyleColor();
            ImGui::PopFont();
            if (columns[i].is_difference && value && ImGui::IsItemHovered())
                draw_difference_tooltip(context, columns, i, compared, row);
            const bool has_bar = !is_difference && is_number && column.name != "run" && column.name != "budget" &&
                                 value && *value > 0 && largest[i] > 0;
            if (!has_bar) continue;
            const float y = at.y + ImGui::GetTextLineHeight();
            const float bar = width * static_cast<float>(std::min(*value / largest[i], 1.0));
            ImGui::GetWindowDrawList()->AddRectFilled({at.x, y}, {at.x + bar, y + 2},
                                                      packed(visible ? color : context.theme.line, 0.7f));
        }
        ImGui::PopID();
        ImGui::PopID();
    }

    static void draw_difference_tooltip(const Context& context, const std::vector<ShownColumn>& columns, size_t i,
                                        const Compared& compared, const TableRow& row) {
        const ComparedRuns* pair = compared.of(row.run);
        if (!pair) return;
        const Session& session = context.session;
        const Column& column = columns[i - 1].column;  // the number stands before its difference
        const double own = number(row.cells[i - 1]).value_or(0);
        const double by = number(row.cells[i]).value_or(0);
        const Change change = analysis::change_of(columns[i].column, row.cells[i]);
        std::string words = fmt::format(
            "{}\n{}: {}\n{}: {}\n{}{}{}", column.title, session.look(pair->b).label,
            text_of(column, column.type == ColumnType::integer ? Cell(static_cast<int64_t>(own - by)) : Cell(own - by)),
            session.look(pair->a).label, text_of(column, row.cells[i - 1]), analysis::format_real(by, 4),
            own - by > 0 && by != 0 ? fmt::format(", {:+.1f} %", 100 * by / (own - by)) : "",
            change == Change::better  ? ": better"
            : change == Change::worse ? ": worse"
                                      : "");
        if (!pair->same_parameters)
            words += fmt::format("\nother parameters: {} before, {} now", session.attributes(pair->b).parameters_json,
                                 session.attributes(pair->a).parameters_json);
        ImGui::SetTooltip("%s", words.c_str());
    }

    static void draw_label(Context& context, const TableRow& row, bool visible, const ImVec4& color) {
        Session& session = context.session;
        const auto& run = session.attributes(row.run);
        const float side = 0.65f * ImGui::GetFontSize();
        if (!row.pinned.empty()) {
            ImGui::TextUnformatted(row.pinned.c_str());
            ImGui::SameLine();
        }
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

    Comparison comparison_;
    float heading_bottom_ = 0;
    Table shown_;  ///< as it stands on the screen
};

}  // namespace

ViewKind cost_view() {
    return {"cost", "Cost", "The runs with what they keep and cost and how far they move from the full cache",
            Dock::bottom, []() -> std::unique_ptr<View> { return std::make_unique<CostView>(); }};
}

}  // namespace kvscope::gui
