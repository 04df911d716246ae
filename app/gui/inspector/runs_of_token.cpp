#include "app/gui/inspector/runs_of_token.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <imgui.h>

#include <algorithm>
#include <set>

#include "analysis/tables/number_text.h"
#include "analysis/tables/table_format.h"
#include "app/gui/drawing/run_marks.h"
#include "app/gui/view/run_label.h"
#include "app/gui/view/widgets.h"

namespace kvscope::gui {
namespace {

using analysis::Table;

std::optional<std::vector<const Document*>> with_same_tokens(Session& session, const Document& document,
                                                             const PromptText& prompt) {
    std::vector<const Document*> same;
    for (const auto& other : session.documents()) {
        if (other.get() == &document) {
            same.push_back(&document);
            continue;
        }
        if (!other->reader()->has_model() || other->prompt >= other->reader()->n_prompts()) continue;
        const auto text = prompt_text(session, *other);
        if (!text) return std::nullopt;
        if (text->ids == prompt.ids) same.push_back(other.get());
    }
    return same;
}

bool add_runs(Session& session, const Document& document, const InspectedToken& asked,
              const TaskSlot<SpanReports>& slot, std::vector<RunOfToken>& runs) {
    const trace::Reader& reader = *document.reader();
    const int64_t n = reader.prompt(document.prompt).visible_tokens();
    if (asked.token >= n) return true;
    const auto answer = ask_span_reports(session, slot, document, asked.token, std::min(asked.last_token, n - 1));
    if (!answer.current) return false;
    if (!answer.value) return true;
    for (const auto& [key, report] : answer.value->runs) {
        if (!session.exists(key) || session.attributes(key).is_full()) continue;
        if (session.is_visible(key) || key == asked.run) runs.push_back({key, report});
    }
    return true;
}

void draw_run(Context& context, const RunKey& key, const analysis::SpanReport& report, const InspectedToken& asked) {
    Session& session = context.session;
    const RunLook look = session.look(key);
    ImGui::PushID(key.document);
    ImGui::PushID(key.text().c_str());
    const float side = 0.65f * ImGui::GetFontSize();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImDrawList* list = ImGui::GetWindowDrawList();
    draw_run_marker(context.theme, look.style, {at.x, at.y + (ImGui::GetTextLineHeight() - side) / 2}, side, list);
    ImGui::Dummy({side, side});
    ImGui::SameLine();
    const bool is_narrow = ImGui::GetContentRegionAvail().x < 17 * ImGui::GetFontSize();
    std::string heads = report.n_keeping_any == 0 ? "dropped"
                        : report.n_tokens > 1 ? fmt::format("{} of {} tokens", report.n_tokens_kept, report.n_tokens)
                        : is_narrow           ? fmt::format("{}/{}", report.n_keeping_any, report.n_places)
                                              : fmt::format("{} of {} heads", report.n_keeping_any, report.n_places);
    // For merged tokens, also show the token's share of entries.
    if (report.n_merging > 0 && !is_narrow)
        heads += fmt::format(", {} entries", analysis::format_number(report.n_entries, 2));
    const ImVec2 label = ImGui::GetCursorScreenPos();
    const float heads_at = label.x + ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(heads.c_str()).x;
    if (ImGui::Selectable(fmt::format("##{}", look.run).c_str(), key == asked.run)) session.selection.select_run(key);
    list->PushClipRect(label, {heads_at - ImGui::GetStyle().ItemSpacing.x, FLT_MAX}, true);
    const ImVec4& ink = report.n_keeping_any > 0 ? context.theme.ink : context.theme.ink_quiet;
    const float room = heads_at - label.x - ImGui::GetStyle().ItemSpacing.x;
    list->AddText(label, packed(ink), shorten_run_label(look.run, room).c_str());
    list->PopClipRect();
    list->AddText({heads_at, label.y}, packed(context.theme.ink_quiet), heads.c_str());
    if (ImGui::IsItemHovered()) {
        Cursor over = session.cursor();
        over.run = key;
        over.first_token = asked.token;
        over.last_token = asked.last_token;
        if (!asked.is_hover) session.set_hover(over);
        ImGui::SetTooltip("%s\n%s", look.label.c_str(), report.sentence.c_str());
    }
    ImGui::PopID();
    ImGui::PopID();
}

Table table_of_runs(const Session& session, const std::vector<RunOfToken>& reports, const PromptText& prompt,
                    const InspectedToken& asked) {
    using analysis::ColumnType;
    const bool is_range = asked.n_tokens() > 1;
    const std::string title = is_range ? fmt::format("Where tokens {} to {} are kept", asked.token, asked.last_token)
                                       : fmt::format("Where token {} ({}) is kept", asked.token,
                                                     prompt.tokens[static_cast<size_t>(asked.token)]);
    Table table{"kept", title, {}, {}};
    const bool several = session.documents().size() > 1;
    if (several) table.columns.push_back({"trace", "Trace", ""});
    table.columns.push_back({"run", "Run", ""});
    if (is_range) table.columns.push_back({"tokens_kept", "Tokens kept in any head", "", ColumnType::integer});
    table.columns.insert(table.columns.end(),
                         {{"heads_keeping", is_range ? "Heads that keep any token" : "Heads that keep the token", "",
                           ColumnType::integer},
                          {"entries", "Entries", "", ColumnType::real, 2},
                          {"heads", "Heads", "", ColumnType::integer},
                          {"layers", is_range ? "Layers that keep all tokens" : "Layers that keep the token", ""}});
    for (const auto& [run, report] : reports) {
        const RunLook look = session.look(run);
        analysis::Row row;
        if (several) row.cells.emplace_back(look.trace);
        row.cells.emplace_back(look.run);
        if (is_range) row.cells.emplace_back(static_cast<int64_t>(report.n_tokens_kept));
        row.cells.insert(row.cells.end(), {static_cast<int64_t>(report.n_keeping_any), report.n_entries,
                                           static_cast<int64_t>(report.n_places),
                                           fmt::format("{}", fmt::join(report.layers_keeping_all, " "))});
        table.rows.push_back(std::move(row));
    }
    return table;
}

}  // namespace

std::optional<std::vector<RunOfToken>> request_token_reports(Session& session, const TaskSlot<SpanReports>& slot,
                                                             const Document& document, const PromptText& prompt,
                                                             const InspectedToken& asked) {
    const auto documents = with_same_tokens(session, document, prompt);
    if (!documents) return std::nullopt;
    std::vector<RunOfToken> runs;
    bool are_read = true;  // request all reports before waiting for any
    for (const Document* each : *documents) are_read = add_runs(session, *each, asked, slot, runs) && are_read;
    return are_read ? std::optional(std::move(runs)) : std::nullopt;
}

Table draw_runs_of_token(Context& context, std::vector<RunOfToken> reports, const PromptText& prompt,
                         const InspectedToken& asked) {
    std::erase_if(reports, [&](const RunOfToken& each) { return !context.session.exists(each.run); });
    if (reports.empty()) return {};
    const auto n_keeping =
        std::ranges::count_if(reports, [](const RunOfToken& each) { return each.report.n_keeping_any > 0; });
    const std::string of = asked.n_tokens() > 1
                               ? fmt::format("{} tokens: some ", analysis::format_count(asked.n_tokens()))
                               : std::string();
    const float around = 3 * ImGui::GetFontSize();
    const std::string whole = fmt::format("{}kept somewhere by {} of {} runs", of, n_keeping, reports.size());
    const bool fits = ImGui::CalcTextSize(whole.c_str()).x + around <= ImGui::GetContentRegionAvail().x;
    ImGui::SeparatorText(fits ? whole.c_str()
                              : fmt::format("kept by {} of {} runs", n_keeping, reports.size()).c_str());
    if (!fits) item_tooltip(whole);
    std::set<int> documents;
    for (const RunOfToken& each : reports) documents.insert(each.run.document);
    const size_t n_lines = reports.size() + (documents.size() > 1 ? documents.size() : 0);
    const float line = ImGui::GetTextLineHeightWithSpacing();
    const float most = std::max(0.28f * ImGui::GetWindowHeight(), 4 * line);
    ImGui::BeginChild("runs", {0, std::min(static_cast<float>(n_lines) * line + 4, most)});
    int shown_document = -1;
    for (const RunOfToken& each : reports) {
        if (documents.size() > 1 && each.run.document != shown_document)
            draw_trace_title(context, *context.session.document(each.run));
        shown_document = each.run.document;
        draw_run(context, each.run, each.report, asked);
    }
    draw_scroll_fade(context.theme);
    ImGui::EndChild();
    return table_of_runs(context.session, reports, prompt, asked);
}

}  // namespace kvscope::gui
