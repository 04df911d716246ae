#include "app/gui/tokens/span_retention.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "app/gui/drawing/run_marks.h"
#include "app/gui/drawing/shaped_text.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/prompt_text.h"

namespace kvscope::gui {
namespace {

std::pair<int64_t, int64_t> asked_span(Context& context, const Document& document) {
    const Cursor selected = context.session.cursor();
    const bool is_here = selected.run.document == document.id() && selected.run.prompt == document.prompt;
    if (is_here && selected.has_tokens()) return {selected.first_token, selected.last_token};
    const auto marks = marked_spans(context.session, document);
    return marks.empty() ? std::pair<int64_t, int64_t>{-1, -1} : marks.front();
}

void draw_sentence(const std::string& sentence) {
    const std::string fitting = beginning_that_fits(sentence, ImGui::GetContentRegionAvail().x);
    ImGui::TextUnformatted(fitting.c_str());
    if (fitting != sentence) item_tooltip(sentence);
}

}  // namespace

float SpanAnswers::height(Context& context, const Document& document, size_t n_runs) const {
    if (asked_span(context, document).first < 0) return 0;
    const float line = ImGui::GetTextLineHeightWithSpacing();
    const float most = std::max(ImGui::GetContentRegionAvail().y / 2, 2 * line);
    const auto n = static_cast<float>(n_runs);
    return is_open ? std::min((n + 1.5f) * line, most) : 1.5f * line;
}

void SpanAnswers::draw(Context& context, const Document& document) {
    Session& session = context.session;
    auto [first, last] = asked_span(context, document);
    const auto prompt = prompt_text(session, document);
    if (!prompt || static_cast<size_t>(last) >= prompt->shown.size()) return;
    const auto answer = ask_span_reports(session, reports_, document, first, last);
    if (answer.value) std::tie(first, last) = std::pair(answer.value->first, answer.value->last);

    std::string shown;
    for (int64_t t = first; t <= last && shown.size() < 40; ++t) shown += prompt->shown[static_cast<size_t>(t)];
    if (ImGui::ArrowButton("##prompt answers", is_open ? ImGuiDir_Down : ImGuiDir_Right)) is_open = !is_open;
    ImGui::SetItemTooltip("shows whether the selected run, or each visible run, kept the tokens");
    ImGui::SameLine();
    ImGui::PushFont(context.fonts.mono, 0);
    text_item(shown);
    ImGui::PopFont();
    ImGui::SameLine();
    disabled_text(first == last ? fmt::format("token {}", first).c_str()
                                : fmt::format("tokens {}–{}", first, last).c_str());
    if (!answer.error.empty()) {
        ImGui::SameLine();
        ImGui::TextDisabled("%s", answer.error.c_str());
        return;
    }
    if (!answer.value) return;
    if (!is_open) {
        for (const auto& [run, report] : answer.value->runs) {
            if (run != session.displayed_run()) continue;
            ImGui::SameLine();
            draw_sentence(report.sentence);
        }
        return;
    }
    ImGui::BeginChild("span answers");
    for (const auto& [key, report] : answer.value->runs) {
        if (!session.exists(key) || !session.is_visible(key)) continue;
        draw_inline_run_marker(context.theme, session.look(key).style);
        draw_sentence(report.sentence);
        if (ImGui::IsItemClicked()) session.selection.select_run(key);
    }
    draw_scroll_fade(context.theme);
    ImGui::EndChild();
}

}  // namespace kvscope::gui
