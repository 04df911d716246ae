#include <fmt/format.h>
#include <fmt/ranges.h>
#include <imgui.h>
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "analysis/runs/cost_difference.h"
#include "analysis/runs/cost_table.h"
#include "analysis/runs/extrapolated_memory.h"
#include "analysis/tables/table_format.h"
#include "app/gui/drawing/run_marks.h"
#include "app/gui/drawing/theme.h"
#include "app/gui/figure/figure_choices.h"
#include "app/gui/figure/figure_menu.h"
#include "app/gui/view/memory_estimate_form.h"
#include "app/gui/view/run_label.h"
#include "app/gui/view/view.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/cell_text.h"
#include "app/gui/view_data/comparison.h"
#include "app/gui/view_data/measure_definitions.h"
#include "app/gui/view_data/runs_table.h"
#include "common/json.h"

namespace kvscope::gui {
namespace {

using analysis::Best;
using analysis::Cell;
using analysis::Change;
using analysis::Column;
using analysis::ColumnType;
using analysis::Table;

/// The colors are Okabe and Ito's green and purple, which color-blind people can distinguish. Orange means a warning.
ImVec4 color_of(Change change, const Theme& theme) {
    const float darker = theme.brightness == Brightness::light ? 0.78f : 1.12f;
    if (change == Change::better) return {0, darker * 0.62f, darker * 0.45f, 1};
    if (change == Change::worse) return {darker * 0.8f, darker * 0.475f, darker * 0.655f, 1};
    return theme.ink_quiet;
}

class CostView : public View {
 public:
    void draw(Context& context) override {
        Session& session = context.session;
        shown_.rows.clear();
        if (session.documents().empty())
            return draw_nothing(context, open_trace_or_demo() + " to compare the costs of runs.");
        std::vector<std::shared_ptr<const Table>> tables;  // owners of the rows' data
        std::vector<RunsTable::Row> rows;
        std::string error;
        std::shared_ptr<const trace::Reader> model;  // first trace that has a model and rows
        bool has_runs = false;
        for (const auto& document : session.documents()) {
            if (document->prompt >= document->reader()->n_prompts() || !document->reader()->has_model()) continue;
            has_runs = true;
            const auto answer = ask_table(session, *document);
            if (!answer.error.empty()) error = answer.error;
            if (!answer.value) continue;
            model = model ? model : document->reader();
            const Table& table = *tables.emplace_back(with_memory(answer.value, document->reader()->model()));
            for (size_t i = 0; i < table.rows.size(); ++i) {
                const RunKey& key = answer.value->runs.at(i);
                if (session.exists(key)) rows.push_back({key, &table.rows[i], {}, {}});
            }
        }
        if (rows.empty()) {
            if (!error.empty())
                draw_error(context, error);
            else if (!has_runs)
                draw_nothing(context, why_no_prompt(*session.documents().front()));
            else
                draw_nothing(context, tables.empty() ? "computing the costs …"
                                                     : "No run has finished yet. Rows appear as runs finish.");
            return;
        }
        if (draw_comparison_choice("cost", context, automatic, comparison_)) ImGui::SameLine();
        memory_.draw(model->model(), session.model_names);
        const Compared compared = find_compared_runs(session, comparison_, automatic, false);
        if (compared.kind == Comparison::Kind::traces && compared.pairs.empty())
            ImGui::TextDisabled("%s", why_no_pairs(compared).c_str());
        RunsTable runs(tables.front()->columns, std::move(rows), compared);
        draw_table(context, compared, runs);
    }

    std::optional<Table> table() const override { return shown_.rows.empty() ? std::nullopt : std::optional(shown_); }

    void save(nlohmann::json& state) const override {
        write_comparison_to_json(state, comparison_);
        memory_.save(state);
    }
    void load(const nlohmann::json& state) override {
        read_comparison_from_json(state, comparison_);
        memory_.load(state);
    }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"click a row", "select the run"},
                {"click a heading",
                 "sort by this column; a second click reverses the order, a third restores the trace's order"},
                {"right-click a heading", "show and hide columns"},
                {"two − one",
                 "for two traces: the column Δ after each number is its difference from the same run in the other "
                 "trace; green means better, purple worse"},
                {"memory at", "the cache's memory for a longer text or another model"},
                {"A − B", "A, B and their difference are above the other runs"},
                {"right-click", "copy or export the table"},
                {"bold", "best value of a column among the visible runs with the same prompt and budget"}};
    }

 private:
    static constexpr int n_columns_to_label = 2;  // "run", which is hidden by default, and "label" stay visible
    static constexpr AutomaticComparison automatic = AutomaticComparison::traces_or_runs;

    struct TableOfRuns {
        Table table;
        std::vector<RunKey> runs;
        std::vector<trace::RunAttributes> attributes;  ///< attributes of each row's run
        int64_t n_tokens = 0;                          ///< number of prompt tokens that policies see
    };

    static TaskResult<TableOfRuns> ask_table(Session& session, const Document& document) {
        static const TaskSlot<TableOfRuns> slot;
        return session.tasks.ask(slot, fmt::format("{} {}", document.id(), document.prompt),
                                 document.runs_stamp(document.prompt),
                                 [reader = document.reader(), prompt = document.prompt,
                                  runs = document.keys(document.prompt)](const std::stop_token& stop) {
                                     return TableOfRuns{analysis::cost_table(reader->with_stop(stop), prompt), runs,
                                                        reader->runs(prompt), reader->prompt(prompt).visible_tokens()};
                                 });
    }

    /// Adds the estimated memory for another text length or another model, if the user enabled the estimate.
    std::shared_ptr<const Table> with_memory(const std::shared_ptr<const TableOfRuns>& runs,
                                             const trace::ModelAttributes& model) const {
        const auto at = memory_.at(model);
        if (!at) return {runs, &runs->table};
        const auto table = std::make_shared<Table>(runs->table);
        analysis::add_memory_columns(*table, runs->attributes, runs->n_tokens, *at);
        return table;
    }

    void draw_table(Context& context, const Compared& compared, RunsTable& runs) {
        const auto n_columns = static_cast<int>(runs.columns.size());
        constexpr ImGuiTableFlags flags = ImGuiTableFlags_Sortable | ImGuiTableFlags_SortTristate |
                                          ImGuiTableFlags_Resizable | ImGuiTableFlags_Reorderable |
                                          ImGuiTableFlags_Hideable | ImGuiTableFlags_ScrollX | ImGuiTableFlags_ScrollY |
                                          ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_NoBordersInBody;
        const bool has_differences = compared.kind == Comparison::Kind::traces && !compared.pairs.empty();
        // ImGui stores column widths by id, so that different contents need different ids.
        const std::string id = fmt::format("runs and {}{}{}", has_differences ? "differences" : "costs",
                                           memory_.is_on() ? " and memory" : "",
                                           context.session.documents().size() > 1 ? " of traces" : "");
        if (!ImGui::BeginTable(id.c_str(), n_columns, flags)) return;
        ImGui::TableSetupScrollFreeze(n_columns_to_label, 1 + static_cast<int>(runs.n_pinned()));
        setup_columns(context.session, runs);
        draw_headings(runs.columns, compared);
        const ImGuiTableSortSpecs* order = ImGui::TableGetSortSpecs();
        if (order && order->SpecsCount > 0)
            runs.sort(static_cast<size_t>(order->Specs[0].ColumnIndex),
                      order->Specs[0].SortDirection == ImGuiSortDirection_Descending);
        std::vector<double> largest;
        std::vector<std::map<std::string, double>> best;
        for (size_t i = 0; i < runs.columns.size(); ++i) {
            largest.push_back(runs.largest(i));
            best.push_back(runs.best(i, context.session));
        }
        for (const RunsTable::Row& row : runs.rows) draw_row(context, runs.columns, compared, row, largest, best);
        shown_ = as_table(context.session, runs);
        const bool on_heading = ImGui::GetIO().MousePos.y < heading_bottom_;
        ImGui::EndTable();
        if (!on_heading || !ImGui::IsMouseReleased(ImGuiMouseButton_Right)) draw_table_menu(context, *this, "cost");
    }

    static float width_of_labels(float widest) {
        const ImGuiTable* table = ImGui::GetCurrentTable();
        const float around = 2 * ImGui::GetStyle().CellPadding.x + table->CellSpacingX1 + table->CellSpacingX2;
        return std::min(std::ceil((widest + chip_width + 0.2f) * ImGui::GetFontSize() + around),
                        0.5f * table->OuterRect.GetWidth());
    }

    /// Widens the column for a longer label. ImGui fits the column only once, but runs arrive one by one.
    void setup_columns(const Session& session, const RunsTable& runs) {
        float widest = 0;
        for (const RunsTable::Row& row : runs.rows) {
            const std::string run = row.run.valid() ? label_of(session, row.run) : std::string();
            const std::string pinned = row.pinned.empty() || run.empty() ? row.pinned : row.pinned + " ";
            widest = std::max(widest, ImGui::CalcTextSize((pinned + run).c_str()).x);
        }
        widest /= ImGui::GetFontSize();  // in font sizes, so that it does not depend on the font
        const bool is_longer = widest_label_ > 0 && widest > widest_label_;
        widest_label_ = std::max(widest_label_, widest);
        for (size_t i = 0; i < runs.columns.size(); ++i) {
            const bool is_label = runs.columns[i].column.name == "label";
            setup_column(runs.columns[i], runs.is_empty(i), is_label ? width_of_labels(widest_label_) : 0);
            if (is_label && is_longer)
                ImGui::GetCurrentTable()->Columns[static_cast<int>(i)].WidthRequest = width_of_labels(widest);
        }
    }

    static std::string label_of(const Session& session, const RunKey& run) {
        return session.look(run).label + (session.attributes(run).status == "complete" ? "" : " (failed)");
    }

    /// Returns the table as shown on the screen. Call between BeginTable and EndTable.
    static Table as_table(const Session& session, const RunsTable& runs) {
        const auto& columns = runs.columns;
        const bool with_pinned = runs.n_pinned() > 0;
        Table table;
        const bool several = session.documents().size() > 1;
        table.name = "runs";
        table.title = "What each run keeps and costs, and how far it diverges from the full cache";
        std::vector<size_t> order;
        for (size_t i = 0; i < columns.size(); ++i)
            if (ImGui::TableGetColumnFlags(static_cast<int>(i)) & ImGuiTableColumnFlags_IsEnabled) order.push_back(i);
        if (with_pinned) table.columns.push_back({"compared", "Compared", "", ColumnType::text});
        if (several) table.columns.push_back({"trace", "Trace", "", ColumnType::text});
        for (const size_t i : order) {
            table.columns.push_back(columns[i].column);
            if (columns[i].is_difference) table.columns.back().best = Best::none;
        }
        for (const RunsTable::Row& row : runs.rows) {
            analysis::Row& copied = table.rows.emplace_back();
            copied.control = !row.row || row.row->control;
            if (row.row) copied.group = RunsTable::group_of(row);
            if (with_pinned) copied.cells.emplace_back(row.pinned);
            if (several) copied.cells.emplace_back(row.run.valid() ? session.look(row.run).trace : std::string());
            for (const size_t i : order) copied.cells.push_back(row.cells[i]);
        }
        return table;
    }

    static void setup_column(const RunsTable::Column& shown, bool is_empty, float width) {
        const Column& column = shown.column;
        ImGuiTableColumnFlags flags = 0;
        if (is_empty) flags |= ImGuiTableColumnFlags_Disabled;
        if (shown.is_hidden_at_first) flags |= ImGuiTableColumnFlags_DefaultHide;
        if (column.name == "label") flags |= ImGuiTableColumnFlags_NoHide;
        if (column.best == Best::highest) flags |= ImGuiTableColumnFlags_PreferSortDescending;
        const std::string name = column.title.empty() ? column.name : column.title;
        const bool with_unit = !column.unit.empty() && column.unit != "B" && !shown.is_difference;
        if (width > 0) flags |= ImGuiTableColumnFlags_WidthFixed;
        ImGui::TableSetupColumn((with_unit ? fmt::format("{} ({})", name, column.unit) : name).c_str(), flags, width);
    }

    void draw_headings(const std::vector<RunsTable::Column>& columns, const Compared& compared) {
        ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
        for (int i = 0; i < static_cast<int>(columns.size()); ++i) {
            if (!ImGui::TableSetColumnIndex(i)) continue;
            const RunsTable::Column& shown = columns[static_cast<size_t>(i)];
            if (shown.is_difference) {
                ImGui::TableHeader(fmt::format("Δ##{}", shown.column.name).c_str());
                const char* direction = shown.column.best == Best::highest  ? "; higher is better"
                                        : shown.column.best == Best::lowest ? "; lower is better"
                                                                            : "";
                item_tooltip(fmt::format("{}: {}{}", shown.column.title, compared.title, direction));
            } else {
                ImGui::TableHeader(ImGui::TableGetColumnName(i));
                if (const char* words = measure_definition(shown.column.name)) item_tooltip(words);
            }
            heading_bottom_ = ImGui::GetItemRectMax().y;
        }
    }

    static void draw_row(Context& context, const std::vector<RunsTable::Column>& columns, const Compared& compared,
                         const RunsTable::Row& row, const std::vector<double>& largest,
                         const std::vector<std::map<std::string, double>>& best) {
        Session& session = context.session;
        const bool is_run = row.run.valid();
        const bool visible = !is_run || session.is_visible(row.run);
        const bool is_quiet = !visible || (is_run && row.row->control);
        const ImVec4 color =
            is_run ? adapt_line_color_to_theme(session.look(row.run).style.color, context.theme) : context.theme.line;
        const std::string group = is_run ? RunsTable::group_of(row) : "";
        ImGui::PushID(row.run.text().c_str());
        ImGui::TableNextRow();
        if (is_run && session.hover().run == row.run)
            ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg1, packed(context.theme.hover, 0.06f));
        if (!row.pinned.empty())
            ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg0, packed(context.theme.hover, is_run ? 0.03f : 0.07f));
        for (size_t i = 0; i < columns.size(); ++i) {
            if (!ImGui::TableSetColumnIndex(static_cast<int>(i))) continue;
            const Column& column = columns[i].column;
            if (column.name == "label") {
                is_run ? draw_label(context, row, visible) : ImGui::TextUnformatted(row.pinned.c_str());
                continue;
            }
            const bool is_difference = columns[i].is_difference || !is_run;
            const std::string text =
                is_difference ? cell_difference_text(column, row.cells[i]) : cell_text(column, row.cells[i]);
            const auto value = number_in_cell(row.cells[i]);
            const auto best_of_group = best[i].find(group);
            const bool is_best = value && best_of_group != best[i].end() && *value == best_of_group->second &&
                                 visible && !row.row->control;
            const ImVec2 at = ImGui::GetCursorScreenPos();
            const float width = ImGui::GetContentRegionAvail().x;
            const bool is_number = column.type != ColumnType::text;
            ImGui::PushFont(is_best ? context.fonts.bold : is_number ? context.fonts.mono : nullptr, 0);
            const float length = ImGui::CalcTextSize(text.c_str()).x;
            if (is_number) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(width - length, 0.0f));
            ImVec4 ink = is_quiet ? context.theme.ink_quiet : context.theme.ink;
            if (is_difference) {
                const bool is_seen = value && !rounds_to_zero(column, *value);
                ink = color_of(is_seen ? analysis::judge_as_better_or_worse(column, row.cells[i]) : Change::none,
                               context.theme);
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
    }

    static void draw_difference_tooltip(const Context& context, const std::vector<RunsTable::Column>& columns, size_t i,
                                        const Compared& compared, const RunsTable::Row& row) {
        const ComparedRuns* pair = compared.of(row.run);
        if (!pair) return;
        const Session& session = context.session;
        const Column& column = columns[i - 1].column;  // the number is in the column before its difference
        const double own = number_in_cell(row.cells[i - 1]).value_or(0);
        const double by = number_in_cell(row.cells[i]).value_or(0);
        const Change change = analysis::judge_as_better_or_worse(columns[i].column, row.cells[i]);
        std::string words =
            fmt::format("{}\n{}: {}\n{}: {}\n{}{}{}", column.title, session.look(pair->b).label,
                        cell_text(column, column.type == ColumnType::integer ? Cell(static_cast<int64_t>(own - by))
                                                                             : Cell(own - by)),
                        session.look(pair->a).label, cell_text(column, row.cells[i - 1]), analysis::format_real(by, 4),
                        own - by > 0 && by != 0 ? fmt::format(", {:+.1f} %", 100 * by / (own - by)) : "",
                        change == Change::better  ? ": better"
                        : change == Change::worse ? ": worse"
                                                  : "");
        if (!pair->same_parameters)
            words += fmt::format("\nparameters differ: {} before, {} now", session.attributes(pair->b).parameters_json,
                                 session.attributes(pair->a).parameters_json);
        ImGui::SetTooltip("%s", words.c_str());
    }

    static void draw_label(Context& context, const RunsTable::Row& row, bool visible) {
        Session& session = context.session;
        const auto& run = session.attributes(row.run);
        const float side = chip_width / 1.6f * ImGui::GetFontSize();
        if (!row.pinned.empty()) {
            ImGui::TextUnformatted(row.pinned.c_str());
            ImGui::SameLine();
        }
        const ImVec2 at = ImGui::GetCursorScreenPos();
        draw_run_marker(context.theme, session.look(row.run).style,
                        {at.x, at.y + (ImGui::GetTextLineHeight() - side) / 2}, side, ImGui::GetWindowDrawList(),
                        visible);
        ImGui::SetCursorPosX(ImGui::GetCursorPosX() + 1.6f * side);
        ImGui::PushStyleColor(ImGuiCol_Text, visible ? context.theme.ink : context.theme.ink_quiet);
        const std::string label = label_of(session, row.run);
        const std::string fitting = shorten_run_label(label, ImGui::GetContentRegionAvail().x);
        if (ImGui::Selectable((fitting + "##cost row").c_str(), row.run == session.cursor().run,
                              ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap))
            session.selection.select_run(row.run);
        ImGui::PopStyleColor();
        const bool is_hovered = ImGui::IsItemHovered();
        if (fitting != label) {  // makes a fitted column wide enough for the whole label
            ImGui::SameLine(0, 0);
            ImGui::Dummy({ImGui::CalcTextSize(label.c_str()).x - ImGui::CalcTextSize(fitting.c_str()).x, 0});
        }
        if (!is_hovered) return;
        Cursor over;
        over.run = row.run;
        session.set_hover(over);
        std::string words = words_on(run, session.look(row.run));
        if (fitting != label) words = label + (words.empty() ? "" : "\n") + words;
        if (!words.empty()) ImGui::SetTooltip("%s", words.c_str());
    }

    static std::string words_on(const trace::RunAttributes& run, const RunLook& look) {
        if (run.status != "complete") return "failed: " + run.message;
        std::vector<std::string> lines;
        if (!look.recorded.empty()) lines.push_back(full_label_for_tooltip(look));
        const bool has_every_token = !run.is_full() && (run.budget_of || run.budget_fraction >= 1);
        if (has_every_token)
            lines.emplace_back(
                "This run keeps every token, so Attn kept and Recall, which measure dropped tokens, are empty.");
        return fmt::format("{}", fmt::join(lines, "\n"));
    }

    static constexpr float chip_width = 1.04f;  ///< width of the run's marker with a gap, in font sizes

    Comparison comparison_;
    MemoryChoice memory_;
    float widest_label_ = 0;  ///< label width for which the column has space, in font sizes
    float heading_bottom_ = 0;
    Table shown_;  ///< the table as shown on the screen
};

}  // namespace

ViewKind cost_view() {
    return {"cost",
            "Cost",
            "Table of runs: what they keep, what they cost, and how far they diverge from the full cache",
            Dock::bottom,
            Topic::results,
            make_view<CostView>,
            R"(
-----.----.-----
................
#####.9999.*****
................
####..666..***..
................
#####.33...*....
................)"};
}

}  // namespace kvscope::gui
