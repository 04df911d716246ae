#include "app/gui/tokens/further_questions.h"

#include <fmt/format.h>
#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>

#include "analysis/runs/run_style.h"
#include "analysis/tables/table_format.h"
#include "app/gui/drawing/run_marks.h"
#include "app/gui/drawing/shaped_text.h"
#include "app/gui/session/engine_session.h"
#include "app/gui/view/text_field.h"
#include "app/gui/view/widgets.h"

namespace kvscope::gui {
namespace {

bool has_answers(const Document* document) {
    if (!document) return false;
    const auto& answers = document->further_answers();
    return std::ranges::any_of(answers, [&](const FurtherAnswer& answer) { return answer.prompt == document->prompt; });
}

std::string how_it_is_asked(const Context& context, const std::vector<RunKey>& runs) {
    const auto n_missing =
        std::ranges::count_if(runs, [&](const RunKey& run) { return !context.engine->has_cache(run); });
    if (n_missing == 0)
        return runs.size() == 1 ? "the compressed cache of this run answers the question"
                                : "the compressed caches of these runs answer the question";
    const Document& document = *context.session.document(runs.front());
    const trace::Reader& reader = *document.reader();
    return fmt::format(
        "{} of {} caches {} not in memory. A prefill of the trace's {} tokens with {} first rebuilds the caches",
        n_missing, runs.size(), n_missing == 1 ? "is" : "are",
        analysis::format_count(reader.prompt(document.prompt).n_tokens),
        displayed_model_name(context.session.model_names, reader.model()));
}

std::vector<RunKey> shown_runs(const Context& context, const Document& document) {
    std::vector<RunKey> runs;
    for (const RunKey& run : context.session.visible_runs(true))
        if (run.document == document.id() && context.engine->obstacle_to_asking(run).empty()) runs.push_back(run);
    return runs;
}

struct Question {
    std::string text;
    std::vector<std::pair<const FurtherAnswer*, RunId>> answers;  ///< each answer and its run, if it still exists
    std::string full;                                             ///< answer of the full cache, or empty
};

std::vector<Question> questions_of(const Document& document) {
    const trace::Reader& reader = *document.reader();
    const auto full = reader.full_run(document.prompt);
    std::vector<Question> questions;
    for (const FurtherAnswer& answer : document.further_answers()) {
        if (answer.prompt != document.prompt) continue;
        auto question =
            std::ranges::find_if(questions, [&](const Question& known) { return known.text == answer.question; });
        if (question == questions.end())
            question = questions.insert(questions.end(), Question{answer.question, {}, {}});
        const RunId run = document.run_of(answer);
        question->answers.emplace_back(&answer, run);
        if (full && document.place_of(document.prompt, run) == full && answer.finished) question->full = answer.text;
    }
    std::ranges::reverse(questions);
    return questions;
}

std::string asked_run(const Document& document, const FurtherAnswer& answer) {
    const auto at = document.place_of(answer.prompt, document.run_of(answer));
    return at ? analysis::run_label(document.reader()->run(answer.prompt, *at)) : answer.run;
}

std::string as_markdown(const Document& document, const std::string& question) {
    std::string text = "**" + question + "**\n\n| run | answer |\n| --- | --- |\n";
    for (const FurtherAnswer& answer : document.further_answers()) {
        if (answer.prompt != document.prompt || answer.question != question || !answer.finished) continue;
        std::string cell = answer.error.empty() ? answer.text : answer.error;
        for (size_t at = 0; (at = cell.find_first_of("\n|", at)) != std::string::npos; at += 2)
            cell.replace(at, 1, cell[at] == '|' ? "\\|" : "  ");
        text += fmt::format("| {} | {} |\n", asked_run(document, answer), cell);
    }
    return text;
}

}  // namespace

float FurtherQuestions::height(const Context& context, float room) const {
    const Document* document = context.session.focus();
    const float field = context.engine ? ImGui::GetFrameHeightWithSpacing() : 0;
    if (!has_answers(document) || (context.engine && !is_open_)) return field;
    const float some = 4 * ImGui::GetTextLineHeightWithSpacing();
    return field + std::min(std::max(answers_height_, some), std::max(0.45f * room, some));
}

void FurtherQuestions::draw(Context& context) {
    Document* document = context.session.focus();
    if (!document) return;
    if (context.engine) draw_field(context);
    if (!has_answers(document) || (context.engine && !is_open_)) return;
    ImGui::BeginChild("further answers");
    const float top = ImGui::GetCursorPosY();
    draw_answers(context, *document);
    answers_height_ = ImGui::GetCursorPosY() - top + ImGui::GetStyle().ItemSpacing.y;
    ImGui::EndChild();
}

void FurtherQuestions::draw_field(Context& context) {
    const Document& document = *context.session.focus();
    const std::vector<RunKey> shown = shown_runs(context, document);
    RunKey selected = context.session.cursor().run;
    const std::vector<RunKey> visible = context.session.visible_runs(true);
    const bool is_hidden = std::ranges::find(visible, selected) == visible.end();
    if (is_hidden && !shown.empty()) selected = shown.front();  // a hidden run has no answer in the list above
    const std::string obstacle = context.engine->obstacle_to_asking(selected);
    const std::string hint =
        obstacle.empty() ? fmt::format("ask the cache of {} another question", context.session.look(selected).label)
                         : obstacle + ": its cache cannot answer questions";
    const auto width_of = [](const char* label) { return button_width(label) + ImGui::GetStyle().ItemSpacing.x; };
    if (has_answers(&document)) {
        if (ImGui::ArrowButton("##further answers", is_open_ ? ImGuiDir_Down : ImGuiDir_Right)) is_open_ = !is_open_;
        ImGui::SetItemTooltip(is_open_ ? "hides the further answers" : "shows the further answers");
        ImGui::SameLine();
    }
    const std::string all = shown.empty()       ? "Ask all runs"
                            : shown.size() == 1 ? "Ask one run"
                                                : fmt::format("Ask all {} runs", shown.size());
    ImGui::SetNextItemWidth(-width_of("Ask") - width_of(all.c_str()));
    const bool entered =
        text_field("##answers question", hint.c_str(), &question_, ImGuiInputTextFlags_EnterReturnsTrue);
    const bool is_empty = question_.find_first_not_of(" \t\r\n") == std::string::npos;
    const auto button = [&](const char* label, const std::vector<RunKey>& runs, bool by_key) {
        ImGui::SameLine();
        ImGui::BeginDisabled(is_empty || runs.empty());
        const bool pressed = ImGui::Button(label);
        ImGui::EndDisabled();
        if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled | ImGuiHoveredFlags_DelayNormal) && !runs.empty())
            ImGui::SetTooltip("%s", how_it_is_asked(context, runs).c_str());
        if ((!pressed && !by_key) || is_empty || runs.empty()) return;
        context.engine->ask(runs, question_);
        is_open_ = true;
        question_.clear();
    };
    button("Ask##answers", obstacle.empty() ? std::vector{selected} : std::vector<RunKey>{}, entered);
    button((all + "###ask all").c_str(), shown, false);
}

void FurtherQuestions::draw_answers(Context& context, Document& document) {
    std::vector<int> removed;
    for (const Question& question : questions_of(document)) {
        ImGui::PushID(question.text.c_str());
        ImGui::PushFont(context.fonts.bold, 0);
        text_item(question.text);
        ImGui::PopFont();
        if (ImGui::BeginPopupContextItem("of the question")) {
            if (ImGui::MenuItem("Copy the answers as Markdown"))
                ImGui::SetClipboardText(as_markdown(document, question.text).c_str());
            if (ImGui::MenuItem("Remove the question"))
                for (const auto& [answer, run] : question.answers) removed.push_back(answer->id);
            ImGui::EndPopup();
        }
        for (const auto& [answer, run] : question.answers) {
            ImGui::PushID(answer->id);
            if (draw_answer(context, document, *answer, run, question.full)) removed.push_back(answer->id);
            ImGui::PopID();
        }
        ImGui::PopID();
    }
    for (const int id : removed) document.remove_further_answer(id);
}

bool FurtherQuestions::draw_answer(Context& context, const Document& document, const FurtherAnswer& answer, RunId run,
                                   const std::string& full) {
    const float em = ImGui::GetFontSize();
    const RunKey key{document.id(), document.prompt, run};
    if (run.valid())
        draw_inline_run_marker(context.theme, context.session.look(key).style);
    else
        draw_inline_run_marker(context.theme, analysis::LineStyle{analysis::Rgb{128, 128, 128}});
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float right = ImGui::GetWindowPos().x + 11.5f * em;
    ImGui::PushClipRect(at, {right, at.y + ImGui::GetTextLineHeight()}, true);
    const std::string label = asked_run(document, answer);
    ImGui::TextDisabled("%s", label.c_str());
    ImGui::PopClipRect();
    if (at.x + ImGui::CalcTextSize(label.c_str()).x > right || label != answer.run) item_tooltip(answer.run);
    if (run.valid() && ImGui::IsItemClicked()) context.session.selection.select_run(key);
    ImGui::SameLine(12 * em);
    ImGui::BeginGroup();
    ImGui::PushTextWrapPos(0);
    if (!answer.error.empty())
        ImGui::TextColored(context.theme.error, "%s", answer.error.c_str());
    else
        draw_words(context, answer, words({document.id(), answer.id}, answer, full));
    if (!answer.remark.empty()) ImGui::TextColored(context.theme.warning, "%s", answer.remark.c_str());
    ImGui::PopTextWrapPos();
    ImGui::EndGroup();
    bool is_removed = false;
    if (ImGui::BeginPopupContextItem("of the answer")) {
        if (ImGui::MenuItem("Copy the answer")) ImGui::SetClipboardText(answer.text.c_str());
        is_removed = ImGui::MenuItem("Remove", nullptr, false, answer.finished);
        ImGui::EndPopup();
    }
    return is_removed;
}

const std::vector<Word>& FurtherQuestions::words(const std::pair<int, int>& id, const FurtherAnswer& answer,
                                                 const std::string& full) {
    Compared& compared = compared_[id];
    if (compared.words.empty() || compared.text != answer.text || compared.reference != full) {
        compared = {answer.text, full, split_words(answer.text)};
        if (answer.finished && !full.empty()) mark_different_words(answer.text, compared.words, full);
    }
    return compared.words;
}

void FurtherQuestions::draw_words(const Context& context, const FurtherAnswer& answer, const std::vector<Word>& words) {
    ImDrawList* list = ImGui::GetWindowDrawList();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x;
    const float line = ImGui::GetTextLineHeightWithSpacing();
    const float space = text_width(" ");
    float x = 0;
    float y = 0;
    const auto begin_line = [&] {
        x = 0;
        y += line;
    };
    const auto put = [&](std::string_view text, const ImVec4& color, bool glued) {
        float w = text_width(text);
        if (x > 0 && !glued) x += space;
        if (x > 0 && x + w > width) begin_line();
        for (; w > width; w = text_width(text)) {  // breaks a word that is wider than a line
            const size_t bytes = bytes_that_fit(text, width);
            if (bytes == text.size()) break;
            draw_text(list, {at.x, at.y + y}, packed(color), text.substr(0, bytes));
            text.remove_prefix(bytes);
            begin_line();
        }
        draw_text(list, {at.x + x, at.y + y}, packed(color), text);
        x += w;
    };
    for (const Word& word : words) {
        if (word.line_breaks > 0 && word.begin > 0) put("↵", context.theme.ink_quiet, false);
        put(std::string_view(answer.text).substr(word.begin, word.end - word.begin),
            word.differs ? context.theme.differs : context.theme.ink, word.glued);
    }
    if (!answer.finished)
        put("…", context.theme.ink_quiet, false);
    else if (answer.text.empty())
        put("empty answer", context.theme.ink_quiet, false);
    ImGui::Dummy({width, y + ImGui::GetTextLineHeight()});
}

}  // namespace kvscope::gui
