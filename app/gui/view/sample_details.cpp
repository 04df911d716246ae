#include "app/gui/view/sample_details.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <string_view>

#include "analysis/tables/column_layout.h"
#include "app/gui/drawing/shaped_text.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/cell_text.h"
#include "common/hidden_question.h"

namespace kvscope::gui {
namespace {

constexpr std::string_view seen = ", question seen", of_bytes = "bytes of ";

std::string text_in_row(const analysis::Table& table, size_t row, std::string_view column) {
    const auto found = std::ranges::find(table.columns, column, &analysis::Column::name);
    if (found == table.columns.end()) return "";
    const auto& cell = table.rows.at(row).cells[static_cast<size_t>(found - table.columns.begin())];
    const auto* text = std::get_if<SharedText>(&cell);
    return text ? text->string() : cell_text(*found, cell);
}

/// Returns what a row of the ranking `samples` means for a run: the policy without the remark on the question, which
/// the sample's name has, too, and the budget as on the command line.
SampleRun sample_run(const analysis::Table& table, size_t row) {
    SampleRun run{text_in_row(table, row, "sample"), text_in_row(table, row, "policy"),
                  text_in_row(table, row, "budget")};
    for (const std::string_view remark : {seen, hidden_question_suffix})
        if (run.policy.ends_with(remark)) run.policy.resize(run.policy.size() - remark.size());
    if (run.budget.starts_with(of_bytes)) run.budget.erase(0, of_bytes.size());
    std::erase(run.budget, ' ');
    if (run.budget == "all") run.budget = "100%";
    return run;
}

void draw_line(const char* name, const std::string& text) {
    disabled_text(name);
    ImGui::SameLine(7 * ImGui::GetFontSize());
    ImGui::BeginGroup();
    for (const std::string& line : analysis::break_into_lines(text, 110)) text_item(line);
    if (text.empty()) disabled_text("nothing");
    ImGui::EndGroup();
}

}  // namespace

void SampleDetails::show(const analysis::Table& samples, size_t row, bool is_recorded) {
    run_ = sample_run(samples, row);
    is_recorded_ = is_recorded;
    const auto text = [&](const char* column) { return text_in_row(samples, row, column); };
    title_ = fmt::format("{}, {} @ {}", text("sample"), text("policy"), text("budget"));
    question_ = text("question");
    expected_ = text("expected");
    answer_ = text("answer");
    full_answer_ = text("full_answer");
    cause_ = text("cause");
    scores_ = fmt::format("{} (full: {})", text("score"), text("full_score"));
}

bool SampleDetails::shows(const analysis::Table& samples, size_t row) const {
    return !run_.sample.empty() && run_ == sample_run(samples, row);
}

float SampleDetails::height(float room) const {
    const float lines = run_.sample.empty() ? 1.5f : 10;
    return std::min(lines * ImGui::GetTextLineHeightWithSpacing(), 0.6f * room);
}

void SampleDetails::draw_run_button(Context& context, const Document& document) const {
    same_line_if_fits(button_width("Run this sample"));
    ImGui::BeginDisabled(!context.engine);
    if (ImGui::Button("Run this sample")) {
        // Every view outlines the mark, here the evidence.
        context.session.mark = expected_.substr(0, expected_.find(" | "));
        (void)context.engine->run_sample(document.id(), run_);
    }
    ImGui::EndDisabled();
    tooltip_of_disabled(context.engine
                            ? "Runs this policy and full again on this sample, records everything, and opens "
                              "the trace. The expected answer is marked in all views"
                            : "This build of kvscope has no engine");
}

void SampleDetails::draw(Context& context, const Document& document) const {
    if (run_.sample.empty()) return quiet_text("Click a row to read its question and answers.");
    ImGui::BeginChild("sample", {0, 0}, ImGuiChildFlags_Borders);
    plain_text(title_);
    if (!is_recorded_) draw_run_button(context, document);
    draw_line("Question", question_);
    draw_line("Expected", expected_);
    draw_line("Answer", answer_);
    draw_line("Full", full_answer_);
    draw_line("Score", scores_);
    if (!cause_.empty()) draw_line("Cause", cause_);
    ImGui::EndChild();
}

}  // namespace kvscope::gui
