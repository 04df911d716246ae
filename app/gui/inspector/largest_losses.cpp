#include "app/gui/inspector/largest_losses.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <variant>

#include "app/gui/drawing/shaped_text.h"
#include "app/gui/view/widgets.h"

namespace kvscope::gui {
namespace {

constexpr size_t most_rows = 20;
constexpr size_t least_rows = 3;  // minimum number of rows, drawn even without space

struct ShownColumns {
    size_t text = 0;
    size_t number = 0;
};

ShownColumns columns_of(const RankedRows& rows, const std::string& text, const std::string& number) {
    ShownColumns shown;
    const auto& columns = rows.made.table.columns;
    for (size_t i = 0; i < columns.size(); ++i) {
        if (columns[i].name == text) shown.text = i;
        if (columns[i].name == number) shown.number = i;
    }
    return shown;
}

struct BrokenText {
    std::string first, second;
    float height() const { return static_cast<float>(second.empty() ? 1 : 2) * ImGui::GetTextLineHeight(); }
};

BrokenText break_text(const std::string& text, float width) {
    const char* end = text.data() + text.size();
    const char* at = ImGui::GetFont()->CalcWordWrapPosition(ImGui::GetFontSize(), text.data(), end, width);
    const std::string rest(std::find_if(at, end, [](char c) { return c != ' '; }), end);
    return {std::string(text.data(), at), rest.empty() ? rest : beginning_that_fits(rest, width)};
}

void draw_row(Context& context, const RankedRows& rows, size_t row, const ShownColumns& columns) {
    const std::string number = rows.text(row, columns.number);
    const std::string text = rows.text(row, columns.text);
    ImGui::PushFont(context.fonts.mono, 0);
    const float number_width = ImGui::CalcTextSize(number.c_str()).x;
    ImGui::PopFont();
    const float width = ImGui::GetContentRegionAvail().x;
    const float room = std::max(width - number_width - ImGui::GetFontSize(), 4 * ImGui::GetFontSize());
    const BrokenText broken = break_text(text, room);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::PushID(static_cast<int>(row));
    if (ImGui::Selectable("##place to look at", false, 0, {0, broken.height()})) {
        Selection& selection = context.session.selection;
        selection.set(cursor_at_row(selection.cursor_in(rows.document, rows.prompt), rows, row));
    }
    item_tooltip(text);
    ImGui::PopID();
    ImDrawList* list = ImGui::GetWindowDrawList();
    const ImU32 ink = packed(context.theme.ink);
    draw_text(list, at, ink, broken.first, room);
    if (!broken.second.empty()) draw_text(list, {at.x, at.y + ImGui::GetTextLineHeight()}, ink, broken.second, room);
    ImGui::PushFont(context.fonts.mono, 0);
    list->AddText({at.x + width - number_width, at.y}, packed(context.theme.ink_quiet), number.c_str());
    ImGui::PopFont();
}

void draw_rows(Context& context, const OrderedRows& ordered, const ShownColumns& columns) {
    const float highest = 2 * ImGui::GetTextLineHeightWithSpacing();
    for (size_t i = 0; i < std::min(ordered.rows.size(), most_rows); ++i) {
        if (i >= least_rows && ImGui::GetContentRegionAvail().y < highest) return;
        draw_row(context, *ordered.of, ordered.rows[i], columns);
    }
}

bool is_above_zero(const OrderedRows& ordered, const ShownColumns& columns) {
    if (ordered.rows.empty()) return false;
    const analysis::Cell& first = ordered.of->made.table.rows[ordered.rows.front()].cells[columns.number];
    const double* number = std::get_if<double>(&first);
    return number != nullptr && *number > 0;
}

void draw_heading(const Context& context, const std::string& heading, const char* rule) {
    ImGui::SeparatorText(heading.c_str());
    wrapped_text(rule, context.theme.ink_quiet);
    ImGui::Spacing();
}

void narrow_down_to_selected(const Session& session, RankingRequest& request) {
    const RunKey selected = session.displayed_run();
    if (std::ranges::find(request.runs, selected) == request.runs.end()) return;
    request.runs = {selected};
    request.options.runs = {session.at(selected).run};
}

}  // namespace

void LargestLosses::draw(Context& context) {
    wrapped_text(
        "Click a token in Prompt or Retention to see which runs, layers and heads keep it, its scores, and the entries "
        "ranked next to it.",
        context.theme.ink_quiet);
    // A what-if has no answer and thus no losses.
    const RunKey selected = context.session.displayed_run();
    const Document* document = context.session.document(selected);
    if (document && document->is_what_if(selected.run)) return;
    if (draw_losses(context) == Drawn::nothing) draw_disagreement(context);
}

LargestLosses::Drawn LargestLosses::draw_losses(Context& context) {
    Session& session = context.session;
    RankingRequest request = ranking_request(session, analysis::ranking_definition("kl-losses"), std::nullopt);
    if (!request.document) return Drawn::nothing;
    narrow_down_to_selected(session, request);
    const auto answer = ask_ranked_rows(session, losses_.ranked, losses_.ordered, request, {});
    if (!answer.error.empty()) return Drawn::nothing;
    if (!answer.value) return Drawn::nothing_yet;
    const RankedRows& rows = *answer.value->of;
    if (!rows.nothing.empty() || rows.made.table.rows.empty()) return Drawn::nothing;
    if (answer.current)
        losses_.of = request.runs.size() == 1 ? session.look(request.runs.front()).run
                                              : fmt::format("{} shown runs", request.runs.size());
    draw_heading(context, fmt::format("Where {} lost most", losses_.of),
                 "Sentences ranked by lost attention. The attention of each step is weighted by the step's divergence "
                 "from the full run (nats). Click a sentence to select it.");
    draw_rows(context, *answer.value, columns_of(rows, "text", "kl_lost_mean"));
    return Drawn::rows;
}

void LargestLosses::draw_disagreement(Context& context) {
    Session& session = context.session;
    const RankingRequest request = ranking_request(session, analysis::ranking_definition("tokens"), std::nullopt);
    if (!request.document || request.runs.size() < 2) return;
    const auto answer = ask_ranked_rows(session, disagreement_.ranked, disagreement_.ordered, request, {});
    if (!answer.error.empty() || !answer.value || !answer.value->of->nothing.empty()) return;
    if (answer.current) disagreement_.of = fmt::format("{} shown runs", request.runs.size());
    const ShownColumns columns = columns_of(*answer.value->of, "token_text", "disagreement");
    if (!is_above_zero(*answer.value, columns)) {
        ImGui::Spacing();
        ImGui::TextWrapped("%s", fmt::format("The {} agree on every token.", disagreement_.of).c_str());
        return;
    }
    draw_heading(
        context, fmt::format("Where {} disagree most", disagreement_.of),
        "Tokens ranked by disagreement: the standard deviation, over the shown runs, of the share of heads that "
        "keep the token. Click a token to select it.");
    draw_rows(context, *answer.value, columns);
}

}  // namespace kvscope::gui
