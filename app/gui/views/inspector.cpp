#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/tables/table_format.h"
#include "analysis/token_report.h"
#include "app/gui/drawing/shaped_text.h"
#include "app/gui/drawing/theme.h"
#include "app/gui/figure/figure_menu.h"
#include "app/gui/inspector/inspected_token.h"
#include "app/gui/inspector/largest_losses.h"
#include "app/gui/inspector/runs_of_token.h"
#include "app/gui/inspector/token_in_layers.h"
#include "app/gui/inspector/token_notes.h"
#include "app/gui/tokens/joined_tokens.h"
#include "app/gui/tokens/token_tooltip.h"
#include "app/gui/view/run_label.h"
#include "app/gui/view/view.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/measure_definitions.h"
#include "app/gui/view_data/prompt_text.h"

namespace kvscope::gui {

namespace {

void draw_words(const Context& context, const PromptText& prompt, size_t first, size_t token, size_t last) {
    const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
    for (size_t i = first; i <= last; ++i) {
        if (i > first) {
            ImGui::SameLine(0, 0);
            if (ImGui::GetCursorPosX() + text_width(prompt.shown[i]) > right) ImGui::NewLine();
        }
        ImGui::PushStyleColor(ImGuiCol_Text, i == token ? context.theme.accent : context.theme.ink_quiet);
        text_item(prompt.shown[i]);
        ImGui::PopStyleColor();
    }
}

void draw_joined_words(const Context& context, const PromptText& prompt, size_t first, size_t token, size_t last) {
    const float room = ImGui::GetContentRegionAvail().x;
    JoinedTokens joined;
    std::span<const float> edges;
    float advance = 0;
    while (true) {
        joined = join_tokens(prompt, static_cast<uint32_t>(first), static_cast<uint32_t>(last));
        edges = byte_edges(joined.text);
        advance = *std::ranges::max_element(edges);
        if (advance <= room || first == last) break;
        if (last > token) --last;
        if (first < token) ++first;
    }
    const size_t begin = token > first ? joined.ends[token - first - 1] : 0;
    const auto [low, high] = reach_of_bytes(edges, begin, joined.ends[token - first]);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImDrawList* list = ImGui::GetWindowDrawList();
    const ImU32 quiet = packed(context.theme.ink_quiet);
    draw_text_between(list, at, quiet, joined.text, 0, low, 1);
    draw_text_between(list, at, packed(context.theme.accent), joined.text, low, high, 1);
    draw_text_between(list, at, quiet, joined.text, high, advance, 1);
    ImGui::Dummy({advance, ImGui::GetTextLineHeight()});
}

void draw_token_heading(const Context& context, const PromptText& prompt, const InspectedToken& asked) {
    const Cursor selected = context.session.cursor();
    const bool of_several = !asked.is_hover && selected.last_token > selected.first_token;
    const auto t = static_cast<size_t>(asked.token);
    ImGui::PushFont(context.fonts.mono, 1.35f * ImGui::GetStyle().FontSizeBase);
    text_item(prompt.shown[t]);
    ImGui::SameLine();
    draw_shared_character(prompt, t);
    ImGui::NewLine();
    ImGui::PopFont();
    ImGui::PushTextWrapPos();
    ImGui::TextDisabled("token %s%s · id %d%s", analysis::format_count(asked.token).c_str(),
                        of_several ? fmt::format(", first of {}–{}", analysis::format_count(selected.first_token),
                                                 analysis::format_count(selected.last_token))
                                         .c_str()
                                   : "",
                        prompt.ids[t], asked.is_hover ? " · under the mouse" : "");
    ImGui::PopTextWrapPos();
    const size_t first = t < 6 ? 0 : t - 6;
    const size_t last = std::min(t + 7, prompt.shown.size()) - 1;
    bool is_joined = false;
    for (size_t i = first; i <= last; ++i)
        is_joined = is_joined || has_letters_drawn_together(prompt, static_cast<uint32_t>(i));
    ImGui::PushFont(context.fonts.mono, 0);
    if (is_joined)
        draw_joined_words(context, prompt, first, t, last);
    else
        draw_words(context, prompt, first, t, last);
    ImGui::PopFont();
}

using analysis::Table;
using analysis::TokenDecision;
using analysis::TokenReport;

/// Returns the number of ranks between a dropped candidate and the cut-off. For kept candidates, returns 0 or less.
double ranks_missing(const TokenDecision& d) {
    if (!d.candidate) return TokenDecision::nothing;
    return static_cast<double>(d.rank) - static_cast<double>(d.n_candidates_kept);
}

struct Place {
    int layer = -1;
    int row = -1;
};

/// Returns the place where a token was closest to being kept or, if it is kept everywhere, closest to being dropped.
Place nearest(const TokenReport& report, int only_layer = -1) {
    Place best;
    double least = 0;
    for (size_t layer = 0; layer < report.n_layers; ++layer) {
        if (only_layer >= 0 && static_cast<int>(layer) != only_layer) continue;
        for (size_t row = 0; row < report.n_rows; ++row) {
            const double missing = ranks_missing(report.at(layer, row));
            const double distance = missing > 0 ? missing : 1e9 - missing;  // heads that drop the token come first
            if (std::isnan(missing) || (best.layer >= 0 && distance >= least)) continue;
            least = distance;
            best = {static_cast<int>(layer), static_cast<int>(row)};
        }
    }
    if (best.layer < 0) best = {std::max(only_layer, 0), 0};
    return best;
}

class InspectorView : public View {
 public:
    void draw(Context& context) override {
        Session& session = context.session;
        for (Table& each : tables_) each.rows.clear();
        // While a menu is open, its table does not change.
        const bool is_open = ImGui::IsPopupOpen("figure menu");
        if (!is_open && ImGui::IsWindowHovered(ImGuiHoveredFlags_RootAndChildWindows)) pointed_at_ = 0;
        const InspectedToken asked = find_inspected_token(session);
        if (asked.token < 0) {
            notes_.finish(session);
            draw_without_token(context);
            return;
        }
        Document& document = *session.document(asked.run);
        const auto prompt = prompt_text(session, document);
        if (!prompt) {
            notes_.finish(session);
            draw_nothing(context, "reading the prompt …");
            return;
        }
        if (static_cast<size_t>(asked.token) >= prompt->tokens.size()) {
            notes_.finish(session);
            draw_nothing(context, fmt::format("This prompt ends before token {}. Click another token.", asked.token));
            return;
        }
        if (asked.token >= document.reader()->prompt(asked.run.prompt).visible_tokens()) {
            draw_token_heading(context, *prompt, asked);
            notes_.draw(context, document, asked);
            ImGui::TextWrapped(
                "Policies did not see this token. The token is in the question, whose entries are always kept and "
                "count in no budget.");
            return;
        }
        read(session, document, *prompt, asked);
        const InspectedToken& shown = shown_ ? shown_->asked : asked;
        draw_token_heading(context, *prompt, shown);
        notes_.draw(context, document, shown);
        if (!shown_) return ImGui::TextDisabled("reading its scores …");
        tables_[0] = draw_runs_of_token(context, shown_->runs, *prompt, shown);
        draw_report(context, document, *prompt, *shown_);
        if (table()) draw_table_menu(context, *this, "inspector");
    }

    /// Returns the table under the mouse: the heads of a layer, the entries at a head's cut-off, or (elsewhere) the
    /// runs that keep the token.
    std::optional<Table> table() const override {
        const Table& pointed_at = tables_[pointed_at_];
        const Table& shown = pointed_at.rows.empty() ? tables_[0] : pointed_at;
        return shown.rows.empty() ? std::nullopt : std::optional(shown);
    }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"a run's line", "select that run"},
                {"the small charts", "click a layer to choose it, drag to go through the layers"},
                {"a head's line", "show the tokens just above and below its cut-off"},
                {"a token at the border", "select it"},
                {"right click, Ctrl+Shift+E", "copy or export the table under the mouse"}};
    }

 private:
    void draw_without_token(Context& context) {
        const Document* focus = context.session.focus();
        if (!focus)
            return draw_nothing(context,
                                open_trace_or_demo() + ", then click a token to see why it was kept or dropped.");
        TokenNotes::draw_list(context, *focus);
        if (focus->prompt >= focus->reader()->n_prompts())
            draw_nothing(context, why_no_prompt(*focus));
        else
            largest_losses_.draw(context);
    }

    struct Answered {
        InspectedToken asked;
        std::vector<RunOfToken> runs;
        std::shared_ptr<const TokenReport> report;
        std::string error;
    };

    void read(Session& session, const Document& document, const PromptText& prompt, const InspectedToken& asked) {
        const auto report =
            session.tasks.ask(report_, "", fmt::format("{} {}", session.stamp(asked.run), asked.token),
                              [at = session.at(asked.run), token = asked.token](const std::stop_token& stop) {
                                  return analysis::token_report(at.reader->with_stop(stop), at.prompt, at.run, token);
                              });
        const auto runs = request_token_reports(session, runs_, document, prompt, asked);
        if (report.current && runs) {
            shown_ = {asked, *runs, report.value, report.error};
            return;
        }
        const bool is_of_this_prompt =
            shown_ && shown_->asked.run.document == asked.run.document && shown_->asked.run.prompt == asked.run.prompt;
        if (!is_of_this_prompt || !session.exists(shown_->asked.run)) shown_.reset();
    }

    void draw_report(Context& context, const Document& document, const PromptText& prompt, const Answered& shown) {
        Session& session = context.session;
        const InspectedToken& asked = shown.asked;
        const RunLook look = session.look(asked.run);
        const std::string label = label_that_fits(look, ImGui::GetContentRegionAvail().x - 3 * ImGui::GetFontSize());
        ImGui::SeparatorText(label.c_str());
        item_tooltip(look.label);
        const ImVec2 line = ImGui::GetItemRectMin();
        const float indent = ImGui::GetStyle().SeparatorTextPadding.x;  // indentation of the label
        const float text_top = line.y + (ImGui::GetItemRectSize().y - ImGui::GetFontSize()) / 2;
        draw_badges_over_text(context, label, {line.x + indent, text_top});
        if (!shown.report) return draw_nothing(context, shown.error);
        const TokenReport& report = *shown.report;
        const ImU32 color = packed(adapt_line_color_to_theme(look.style.color, context.theme));
        const std::string measure = score_definition(session.attributes(asked.run).policy);
        draw_layer_charts(context, report, color, measure);
        int layer = session.cursor().layer;
        const bool is_chosen = layer >= 0 && static_cast<size_t>(layer) < report.n_layers;
        if (!is_chosen) layer = nearest(report).layer;
        Place place = nearest(report, layer);
        const int row = selected_row(session, document, report, layer);
        if (row >= 0) place.row = row;

        ImGui::Spacing();
        ImGui::PushFont(context.fonts.bold, 0);
        ImGui::Text("layer %d", layer);
        ImGui::PopFont();
        ImGui::SameLine();
        quiet_text(is_chosen ? "as selected" : report.has_scores ? "closest to its cut-off" : "");
        const float heads_top = ImGui::GetCursorScreenPos().y;
        draw_heads_of_layer(context, document, report, layer, place.row, color, measure);
        point_at(1, heads_top);
        tables_[1] = heads_table(report, static_cast<size_t>(layer), look.label);
        ImGui::PushTextWrapPos(0);
        ImGui::TextUnformatted(report.sentence(static_cast<size_t>(layer), static_cast<size_t>(place.row)).c_str());
        ImGui::PopTextWrapPos();
        if (!report.has_scores) return;
        const float border_top = ImGui::GetCursorScreenPos().y;
        tables_[2] = draw_entries_at_cut_off(context, border_, prompt, asked, layer, place.row);
        point_at(2, border_top);
    }

    static int selected_row(const Session& session, const Document& document, const TokenReport& report, int layer) {
        const Cursor cursor = session.cursor();
        if (cursor.layer != layer || cursor.kv_head < 0) return -1;
        const auto& model = document.reader()->model();
        int row = cursor.kv_head;
        if (report.query_heads) {
            const auto group =
                static_cast<int>(std::max<int64_t>(model.n_heads / std::max<int64_t>(model.n_kv_heads, 1), 1));
            row = cursor.query_head >= 0 ? cursor.query_head : cursor.kv_head * group;
        }
        return row < static_cast<int>(report.n_rows) ? row : -1;
    }

    void point_at(size_t table, float top) {
        if (ImGui::IsPopupOpen("figure menu") || !ImGui::IsWindowHovered(ImGuiHoveredFlags_RootAndChildWindows)) return;
        const float mouse = ImGui::GetMousePos().y;
        if (mouse >= top && mouse < ImGui::GetCursorScreenPos().y) pointed_at_ = table;
    }

    std::array<Table, 3> tables_;  ///< where the token is kept, a layer's heads, a head's border
    size_t pointed_at_ = 0;        ///< index of the table under the mouse
    TokenNotes notes_;
    LargestLosses largest_losses_;
    std::optional<Answered> shown_;
    TaskSlot<SpanReports> runs_;
    TaskSlot<TokenReport> report_;
    TaskSlot<analysis::Border> border_;
};

}  // namespace

ViewKind inspector_view() {
    return {"inspector", "Inspector",   "Why a token was kept or dropped: its score, rank and cut-off in each head",
            Dock::right, Topic::tokens, make_view<InspectorView>,
            R"(
9999999999#9999.
................
8888888888#88...
................
7777777777#.....
..........#.....
4444444...#.....
2222......#.....)"};
}

}  // namespace kvscope::gui
