#include <fmt/format.h>
#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "analysis/tables/column_layout.h"
#include "app/gui/drawing/shaped_text.h"
#include "app/gui/figure/figure_choices.h"
#include "app/gui/figure/figure_menu.h"
#include "app/gui/view/sample_details.h"
#include "app/gui/view/text_field.h"
#include "app/gui/view/view.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/ranked_rows.h"
#include "common/json.h"

namespace kvscope::gui {
namespace {

using analysis::Column;
using analysis::ColumnType;
using analysis::FigureDefinition;

constexpr const char* first_ranking = "sentences";
constexpr const char* samples_ranking = "samples";

class RankingsView : public View {
 public:
    void draw(Context& context) override {
        Session& session = context.session;
        shown_ = nullptr;
        if (auto wanted = std::exchange(session.wanted_samples, std::nullopt)) {
            ranking_ = samples_ranking;
            samples_ = *std::move(wanted);
            details_ = {};
        }
        if (session.documents().empty())
            return draw_nothing(context, open_trace_or_demo() + " to rank its sentences, heads, layers and answers.");
        first_ = is_of_samples(session) ? samples_ranking : first_ranking;
        const FigureDefinition& definition = chosen();
        const RankingRequest request = ranking_request(session, definition, threshold_, samples_);
        draw_choice(context, definition, request);
        if (!request.document) return draw_nothing(context, request.why_not);
        const auto answer = ask_ranked_rows(session, ranked_, ordered_, request, order_);
        if (!answer.error.empty()) return draw_error(context, answer.error);
        if (!answer.value) return draw_nothing(context, "ranking …");
        if (!answer.value->of->nothing.empty()) return draw_nothing(context, answer.value->of->nothing);
        shown_ = answer.value;
        const bool has_details = definition.name == samples_ranking;
        const float room = ImGui::GetContentRegionAvail().y;
        ImGui::BeginChild("rows", {0, has_details ? room - details_.height(room) : 0});
        draw_table(context, *shown_);
        ImGui::EndChild();
        if (has_details) details_.draw(context, *request.document);
    }

    std::optional<analysis::Table> table() const override {
        return shown_ ? std::optional(shown_->table()) : std::nullopt;
    }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"the list above", "choose the ranking; the palette (Ctrl+K) also lists each one under \"Rank\""},
                {"A, B", "for sentences: the two runs, as chosen in Runs"},
                {"click a row",
                 "select its run, layer, head, tokens or step; for samples, show question and answers below"},
                {"highlighted rows", "belong to the selection or to the item under the mouse in another view"},
                {"click a heading",
                 "sort by this column; a second click reverses the order, a third restores the ranking's order"},
                {"right-click a heading", "show and hide columns"},
                {"filter", "show rows with this text in a cell"},
                {"right-click", "copy or export the table as shown"}};
    }

    void save(nlohmann::json& state) const override {
        if (!ranking_.empty()) state["ranking"] = ranking_;
        state["filter"] = order_.filter;
        if (threshold_) state["threshold"] = *threshold_;
    }
    void load(const nlohmann::json& state) override {
        ranking_ = state.value("ranking", std::string());
        order_.filter = state.value("filter", std::string());
        threshold_.reset();
        if (const auto found = state.find("threshold"); found != state.end() && found->is_number())
            set_threshold(found->get<double>());
    }

 private:
    /// Whether the trace in focus has only rows of samples or prompts.
    static bool is_of_samples(const Session& session) {
        const Document* focus = session.focus();
        if (!focus || focus->reader()->n_prompts() > 0) return false;
        return !focus->reader()->result_tasks().empty() ||
               focus->reader()->has_results(trace::schema::root::prompt_results);
    }

    /// Returns the chosen ranking, or the first ranking if none is chosen or this version does not have it.
    const FigureDefinition& chosen() const {
        const auto all = analysis::ranking_definitions();
        const auto find = [&](const std::string& name) {
            return std::ranges::find_if(all, [&](const auto& definition) { return definition.name == name; });
        };
        const auto found = find(ranking_);
        return found != all.end() ? *found : *find(first_);
    }

    void set_threshold(double value) {
        const auto* threshold = analysis::find_option(chosen(), "threshold");
        if (threshold && std::isfinite(value)) threshold_ = std::clamp(value, 0.0, threshold->number->most);
    }

    void draw_choice(Context& context, const FigureDefinition& definition, const RankingRequest& request) {
        const float em = ImGui::GetFontSize();
        float widest = 0;
        for (const FigureDefinition& each : analysis::ranking_definitions())
            widest = std::max(widest, ImGui::CalcTextSize(each.title.c_str()).x);
        ImGui::SetNextItemWidth(widest + ImGui::GetFrameHeight() + 2 * ImGui::GetStyle().FramePadding.x);
        if (ImGui::BeginCombo("##ranking", definition.title.c_str(), ImGuiComboFlags_HeightLarge)) {
            for (const FigureDefinition& other : analysis::ranking_definitions()) {
                if (ImGui::Selectable(other.title.c_str(), &other == &definition) && &other != &definition) {
                    ranking_ = other.name;
                    threshold_.reset();
                }
                item_tooltip(other.summary);
            }
            ImGui::EndCombo();
        }
        item_tooltip(definition.summary);
        if (const auto* threshold = analysis::find_option(definition, "threshold")) draw_threshold(*threshold->number);
        if (analysis::find_option(definition, "tokens")) {
            const auto& tokens = request.options.tokens;
            same_line_if_fits(12 * em);
            ImGui::AlignTextToFramePadding();
            disabled_text(tokens ? fmt::format("tokens {} to {}", tokens->first, tokens->last).c_str()
                                 : "all tokens: select some");
        }
        if (definition.name == samples_ranking && !samples_.runs.empty()) {
            same_line_if_fits(16 * em);
            ImGui::AlignTextToFramePadding();
            disabled_text("only " + samples_.runs);
            ImGui::SameLine();
            if (ImGui::Button("all runs##of samples")) samples_.runs.clear();
        }
        same_line_if_fits(11 * em);
        ImGui::SetNextItemWidth(11 * em);
        text_field("##filter of ranking", "filter", &order_.filter);
        if (!analysis::compares_two_runs(definition)) return;
        same_line_if_fits(32 * em);
        draw_pair_choice(context, "rankings");
    }

    void draw_threshold(const analysis::NumberField& threshold) {
        const float em = ImGui::GetFontSize();
        same_line_if_fits(14 * em);
        double value = threshold_.value_or(threshold.value);
        ImGui::SetNextItemWidth(5 * em);
        const std::string label = fmt::format("{} ({})##threshold of ranking", threshold.title, threshold.unit);
        if (ImGui::InputDouble(label.c_str(), &value, 0, 0, "%g", ImGuiInputTextFlags_EnterReturnsTrue))
            set_threshold(value);
        if (ImGui::IsItemDeactivatedAfterEdit()) set_threshold(value);
    }

    static bool is_long_text(const Column& column) {
        constexpr std::array names = {"text", "question", "expected", "answer", "full_answer"};
        return column.type == ColumnType::text && std::ranges::find(names, column.name) != names.end();
    }

    /// Returns the width of each column of long text that leaves space for the headings of the other columns.
    static float text_width_of(const std::vector<Column>& columns) {
        const float em = ImGui::GetFontSize();
        float others = ImGui::GetStyle().ScrollbarSize;
        for (const Column& column : columns)
            if (!is_long_text(column) && !is_said_by_others(column))
                others += ImGui::CalcTextSize(heading_of(column).c_str()).x + 2 * ImGui::GetStyle().CellPadding.x +
                          1.5f * em;  // sort arrow and borders
        const auto n = std::max<float>(1, static_cast<float>(std::ranges::count_if(columns, is_long_text)));
        return std::clamp((ImGui::GetContentRegionAvail().x - others) / n, 12 * em, 48 * em);
    }

    /// Whether the column only repeats the token span, which other columns show as first token and text.
    static bool is_said_by_others(const Column& column) {
        return column.name == "last_token" || (column.name == "tokens" && column.title == "Tokens");
    }

    static std::string heading_of(const Column& column) {
        const std::string name = column.title.empty() ? column.name : column.title;
        return column.unit.empty() ? name : fmt::format("{} ({})", name, column.unit);
    }

    static void setup_column(const Column& column, float long_text_width) {
        ImGuiTableColumnFlags flags = column.type == ColumnType::text ? 0 : ImGuiTableColumnFlags_PreferSortDescending;
        if (is_long_text(column)) flags |= ImGuiTableColumnFlags_WidthFixed;
        if (is_said_by_others(column)) flags |= ImGuiTableColumnFlags_DefaultHide;
        ImGui::TableSetupColumn(heading_of(column).c_str(), flags, is_long_text(column) ? long_text_width : 0);
    }

    static bool draw_headings(int n_columns) {
        float bottom = 0;
        ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
        for (int i = 0; i < n_columns; ++i) {
            if (!ImGui::TableSetColumnIndex(i)) continue;
            ImGui::TableHeader(ImGui::TableGetColumnName(i));
            bottom = ImGui::GetItemRectMax().y;
        }
        return ImGui::GetIO().MousePos.y < bottom;
    }

    void take_order() {
        const ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
        order_.column.reset();
        if (!specs || specs->SpecsCount == 0) return;
        order_.column = static_cast<size_t>(specs->Specs[0].ColumnIndex);
        order_.descending = specs->Specs[0].SortDirection == ImGuiSortDirection_Descending;
    }

    void draw_table(Context& context, const OrderedRows& ordered) {
        const RankedRows& rows = *ordered.of;
        const auto& columns = rows.made.table.columns;
        constexpr ImGuiTableFlags flags = ImGuiTableFlags_Sortable | ImGuiTableFlags_SortTristate |
                                          ImGuiTableFlags_Resizable | ImGuiTableFlags_Reorderable |
                                          ImGuiTableFlags_Hideable | ImGuiTableFlags_ScrollX | ImGuiTableFlags_ScrollY |
                                          ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_NoBordersInBody;
        const std::string id = fmt::format("ranking {} {}", rows.ranking, columns.size());
        const float long_text_width = text_width_of(columns);
        if (!ImGui::BeginTable(id.c_str(), static_cast<int>(columns.size()), flags)) return;
        ImGui::TableSetupScrollFreeze(0, 1);
        for (const Column& column : columns) setup_column(column, long_text_width);
        const bool on_heading = draw_headings(static_cast<int>(columns.size()));
        take_order();
        ImGuiListClipper clipper;
        clipper.Begin(static_cast<int>(ordered.rows.size()));
        while (clipper.Step())
            for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
                if (draw_row(context, rows, ordered.rows[static_cast<size_t>(i)]) && rows.ranking == samples_ranking)
                    show_sample(context.session, rows, ordered.rows[static_cast<size_t>(i)]);
        if (ordered.rows.empty()) {
            ImGui::TableNextRow();
            ImGui::TableNextColumn();
            ImGui::TextDisabled("%s", order_.filter.empty() ? "nothing to rank" : "no row has this text");
        }
        ImGui::EndTable();
        if (!on_heading || !ImGui::IsMouseReleased(ImGuiMouseButton_Right)) draw_table_menu(context, *this, "rankings");
    }

    /// Returns whether the row was clicked.
    bool draw_row(const Context& context, const RankedRows& rows, size_t row) const {
        Session& session = context.session;
        const auto& columns = rows.made.table.columns;
        const Cursor selected = session.selection.cursor_in(rows.document, rows.prompt);
        ImGui::PushID(static_cast<int>(row));
        ImGui::TableNextRow();
        if (is_cursor_at_row(session.hover(), rows, row))
            ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg1, packed(context.theme.hover, 0.06f));
        ImGui::TableNextColumn();
        const ImVec2 at = ImGui::GetCursorPos();
        const bool is_sample = rows.ranking == samples_ranking;
        const bool is_selected =
            is_sample ? details_.shows(rows.made.table, row) : is_cursor_at_row(session.cursor(), rows, row);
        const bool is_clicked = ImGui::Selectable(
            "##ranked row", is_selected, ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap);
        if (is_clicked && !is_sample) session.selection.set(cursor_at_row(selected, rows, row));
        if (ImGui::IsItemHovered() && !is_sample) {
            Cursor over;
            over.run = selected.run;
            session.set_hover(cursor_at_row(over, rows, row));
        }
        ImGui::SetCursorPos(at);
        for (size_t i = 0; i < columns.size(); ++i) {
            if (!ImGui::TableSetColumnIndex(static_cast<int>(i))) continue;
            draw_cell(context, columns[i], rows.text(row, i));
        }
        ImGui::PopID();
        return is_clicked;
    }

    /// Shows a sample below the table, and selects its run if the trace contains the run.
    void show_sample(Session& session, const RankedRows& rows, size_t row) {
        const analysis::RankedSubject& of = rows.made.of.at(row);
        const Document* document = session.document(rows.document);
        const bool is_recorded = of.prompt >= 0 && document;
        if (is_recorded) session.selection.select_run(document->key_of(of.prompt, of.subject.run));
        details_.show(rows.made.table, row, is_recorded);
    }

    static void draw_cell(const Context& context, const Column& column, const std::string& text) {
        const bool is_number = column.type != ColumnType::text;
        ImGui::PushFont(is_number || analysis::is_token_column(column) ? context.fonts.mono : nullptr, 0);
        const float room = ImGui::GetContentRegionAvail().x;
        if (is_number)
            ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(room - ImGui::CalcTextSize(text.c_str()).x, 0.0f));
        text_item(is_long_text(column) ? beginning_that_fits(text, room) : text);
        ImGui::PopFont();
        if (is_long_text(column) && ImGui::IsItemHovered() && text_width(text) > room) draw_whole_text(text);
    }

    static void draw_whole_text(const std::string& text) {
        if (!ImGui::BeginTooltip()) return;
        for (const std::string& line : analysis::break_into_lines(text, 80)) text_item(line);
        ImGui::EndTooltip();
    }

    std::string ranking_;  ///< the chosen ranking; empty: none is chosen
    std::string first_ = first_ranking;
    std::optional<double> threshold_;
    RowOrder order_;
    WantedSamples samples_;
    SampleDetails details_;
    TaskSlot<RankedRows> ranked_;
    TaskSlot<OrderedRows> ordered_;
    std::shared_ptr<const OrderedRows> shown_;
};

}  // namespace

ViewKind rankings_view() {
    return {"rankings",
            "Rankings",
            "Ranked lists: sentences that A dropped and B kept, heads and layers that differ, tokens on which runs "
            "disagree, steps that diverge, answers that differ",
            Dock::bottom,
            Topic::results,
            make_view<RankingsView>,
            R"(
#.99999999999999
................
#.888888888.....
................
#.6666666.......
................
#.444...........
................)"};
}

}  // namespace kvscope::gui
