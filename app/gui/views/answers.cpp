#include <fmt/format.h>
#include <fmt/ranges.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/tables/table_format.h"
#include "app/gui/drawing/run_marks.h"
#include "app/gui/drawing/shaped_text.h"
#include "app/gui/figure/figure_choices.h"
#include "app/gui/figure/figure_plot.h"
#include "app/gui/session/engine_session.h"
#include "app/gui/session/session.h"
#include "app/gui/tokens/answer_diff.h"
#include "app/gui/tokens/further_questions.h"
#include "app/gui/view/run_label.h"
#include "app/gui/view/text_field.h"
#include "app/gui/view/view.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/answer_comparison.h"
#include "app/gui/view_data/measure_definitions.h"
#include "app/gui/view_data/prompt_text.h"
#include "common/json.h"

namespace kvscope::gui {
namespace {

constexpr size_t most_curves = 12;  // more runs are rows of a map

class AnswersView : public View {
 public:
    void draw(Context& context) override {
        Session& session = context.session;
        const Document* focus = session.focus();
        if (!focus) return draw_nothing(context, open_trace_or_demo() + " to read the answers of its runs.");
        if (focus->prompt >= focus->reader()->n_prompts()) return draw_nothing(context, why_no_prompt(*focus));
        draw_header(context, *focus);
        if (prompt_open_) draw_prompt(context, *focus);
        const auto shown = outputs(session);
        if (shown.empty() && stopped_in(*focus).empty())
            return draw_nothing(context, "No run is visible. Select a run in Runs, or press 0 to show all.");
        const float em = ImGui::GetFontSize();
        const auto request = request_for(session, shown);
        const float ask = further_.height(context, ImGui::GetContentRegionAvail().y);
        const float room = ImGui::GetContentRegionAvail().y - ask;
        const float lowest_plot = 6.5f * em;
        const float plot =
            request && room > 2 * lowest_plot
                ? std::clamp(room - text_height_, std::clamp(0.42f * room, lowest_plot, 14 * em), 0.7f * room)
                : 0;
        draw_outputs(context, shown, std::max(room - plot - (plot > 0 ? ImGui::GetStyle().ItemSpacing.y : 0), 3 * em));
        if (plot > 0) draw_divergence(context, shown, *request, plot);
        if (ask > 0) further_.draw(context);
    }

    std::optional<FigureRequest> figure(const Session& session) const override {
        return request_for(session, outputs(session));
    }

    std::vector<std::string> commands() const override { return {"Prompt as sent"}; }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {
            {"hover, click or drag along the plot", "select a decode step; its word is highlighted in every answer"},
            {"click a cell or curve", "select its run and decode step"},
            {"wheel over the plot", "zoom into steps"},
            {"double-click the plot, or F", "show all steps"},
            {"click a word", "select the step that generated it"},
            {"underlined", "tokens that are not in the reference's answer (words if there are no token ids)"},
            {"a stroke", "the reference has more text there"},
            {"against full, A, a trace",
             "the reference: the full cache, run A, or the same run in another trace, whose divergence is then "
             "subtracted at each step"},
            {"many runs", "a map of runs and steps replaces more than twelve curves"},
            {"Prompt as sent", "the exact text, chat template, cut and end-of-text ids"}};
    }

    void fit() override { plot_.fit(); }
    void save(nlohmann::json& state) const override {
        state = {{"stacked", stacked_}, {"prompt", prompt_open_}};
        reference_.save(state);
    }
    void load(const nlohmann::json& state) override {
        reference_.load(state);
        stacked_ = state.value("stacked", false);
        prompt_open_ = state.value("prompt", false);
    }

 private:
    struct Shown {
        RunKey run;
        RunLook look;
        std::shared_ptr<const AnswerOutput> output;
        std::string error;
    };

    std::vector<Shown> outputs(const Session& session) const {
        std::vector<Shown> all;
        const auto source = [&](const RunKey& key) { return session.at(key); };
        for (const RunKey& key : session.visible_runs(true)) {
            const std::optional<RunKey> reference = reference_.of(session, key);
            std::optional<RunAt> less;
            if (reference) less = source(*reference);
            // Until the next output is ready, shows the previous output with the same reference.
            const auto answer = session.tasks.ask(
                outputs_, key.text() + (reference ? " less " + reference->text() : ""),
                session.stamp(key) + (reference ? " less " + session.stamp(*reference) : ""),
                [of = source(key), less](const std::stop_token& stop) {
                    return read_and_compare_answer(of.with_stop(stop), less ? less->with_stop(stop) : less);
                });
            all.push_back({key, session.look(key), answer.value, answer.error});
        }
        return all;
    }

    /// Returns the KL at each step, minus the reference's KL unless the reference is full.
    std::vector<float> divergence(const AnswerOutput& output) const {
        return reference_.is_full() ? output.kl : output.kl_difference();
    }

    /// Omits the full cache, because its divergence is zero.
    std::optional<FigureRequest> request_for(const Session& session, const std::vector<Shown>& shown) const {
        std::vector<RunKey> runs;
        for (const Shown& one : shown)
            if (one.output && !session.attributes(one.run).is_full() && !divergence(*one.output).empty())
                runs.push_back(one.run);
        FigureRequest request = reference_.is_full()
                                    ? figure_request_for_runs("step-kl", runs)
                                    : difference_figure_request("step-kl", reference_.compared(session, runs));
        if (request.document < 0) return std::nullopt;
        request.against_each = reference_.is_one_run();
        if (runs.size() > most_curves) request.options.source = "map";
        return request;
    }

    void draw_divergence(Context& context, const std::vector<Shown>& shown, const FigureRequest& request,
                         float height) {
        ImGui::BeginChild("divergence", {0, height}, 0, ImGuiWindowFlags_NoScrollbar);
        if (const auto figure = figure_or_draw_reason(context, request_figure(context.session, made_, request),
                                                      "reading the divergence …")) {
            FigureLook look;
            look.legend = false;
            look.scrubs = true;
            look.least_height = 2 * ImGui::GetFontSize();
            look.weight = weight_of_runs(context.session, *figure);
            const FigureHit hit = plot_.draw(context, "divergence", {0, 0}, figure, look);
            if (hit.over && hit.over->step >= 0) take_step_of_plot(context, shown, *hit.over, hit.row >= 0);
        }
        ImGui::EndChild();
    }

    void take_step_of_plot(Context& context, const std::vector<Shown>& shown, const Cursor& over, bool is_map) const {
        Session& session = context.session;
        const int step = over.step;
        const bool is_cell = is_map && over.run.valid();
        if (ImGui::IsMouseDown(ImGuiMouseButton_Left) && session.cursor().step != step)
            session.selection.select_step(step);
        begin_tooltip_beside();
        ImGui::Text("step %d: KL(full ‖ run) of the token distributions", step);
        if (!reference_.is_full()) ImGui::Text("minus %s KL at the same step", reference_.possessive().c_str());
        ImGui::TextDisabled("%s", measure_definition("kl"));
        const auto t = static_cast<size_t>(step);
        for (const Shown& one : shown) {
            if (!one.output || session.attributes(one.run).is_full() || (is_cell && one.run != over.run)) continue;
            const std::vector<float> values = divergence(*one.output);
            if (t >= values.size()) continue;
            draw_inline_run_marker(context.theme, one.look.style);
            const bool other_token = t < one.output->agreement.size() && one.output->agreement[t] == 0;
            const std::string value = reference_.is_full()
                                          ? fmt::format("{:.4g} nats", values[t])
                                          : fmt::format("{:+.4g} nats: {:.4g} − {:.4g}", values[t], one.output->kl[t],
                                                        one.output->reference_kl[t]);
            plain_text(fmt::format("{}  {}{}", one.look.label, value,
                                   other_token ? "; the most likely token differs from the full run's" : ""));
        }
        end_tooltip_beside();
    }

    static std::string questions_of_traces(const Session& session, const Document& shown) {
        if (session.documents().size() == 1) return shown.reader()->prompt(shown.prompt).question;
        std::string lines;
        for (const auto& document : session.documents()) {
            if (document->prompt >= document->reader()->n_prompts()) continue;
            const std::string& question = document->reader()->prompt(document->prompt).question;
            lines += fmt::format("{}{}: {}", lines.empty() ? "" : "\n", session.name_of(*document),
                                 question.empty() ? "no question" : question);
        }
        return lines;
    }

    void draw_header(Context& context, const Document& document) {
        const Session& session = context.session;
        const auto& attributes = document.reader()->prompt(document.prompt);
        int how = stacked_ ? 1 : 0;
        ImGui::SetNextItemWidth(8 * ImGui::GetFontSize());
        if (ImGui::Combo("##answers how", &how, "side by side\0below each other\0")) stacked_ = how == 1;
        same_line_if_fits(9 * ImGui::GetFontSize());
        draw_reference_choice(session, reference_);
        const char* as_sent = "Prompt as sent";
        same_line_if_fits(button_width(as_sent));
        ImGui::PushStyleColor(ImGuiCol_Text, prompt_open_ ? context.theme.accent : context.theme.ink);
        if (command_button(as_sent)) prompt_open_ = !prompt_open_;
        ImGui::PopStyleColor();
        if (attributes.question.empty()) {
            const char* none = "no question apart from the context";
            same_line_if_fits(ImGui::CalcTextSize(none).x);
            ImGui::AlignTextToFramePadding();
            ImGui::TextDisabled("%s", none);
        } else {
            const std::string question =
                session.documents().size() > 1
                    ? fmt::format("{}: {}", trace_title(session, document), attributes.question)
                    : attributes.question;
            const char* seen = attributes.query_aware ? "policies saw it" : "policies did not see it";
            same_line_if_fits(ImGui::CalcTextSize(seen).x);
            ImGui::AlignTextToFramePadding();
            const float space = ImGui::GetStyle().ItemSpacing.x;
            const float room = ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(seen).x - space;
            if (room > 6 * ImGui::GetFontSize()) {
                text_item(beginning_that_fits(question, room));
                item_tooltip(questions_of_traces(session, document));
                draw_badges_over_text(context, question.substr(0, question.find(attributes.question)),
                                      ImGui::GetItemRectMin());
                ImGui::SameLine();
            }
            ImGui::TextDisabled("%s", seen);
            item_tooltip(questions_of_traces(session, document));
        }
        if (attributes.truncated) {
            const char* cut = "the prompt was cut";
            same_line_if_fits(ImGui::CalcTextSize(cut).x);
            ImGui::TextColored(context.theme.warning, "%s", cut);
        }
    }

    void draw_prompt(Context& context, const Document& document) {
        const auto& attributes = document.reader()->prompt(document.prompt);
        const auto row = [&](const char* name, const std::string& value) {
            ImGui::TableNextRow();
            ImGui::TableNextColumn();
            ImGui::TextDisabled("%s", name);
            ImGui::TableNextColumn();
            ImGui::PushTextWrapPos(0);
            ImGui::TextUnformatted(value.c_str());
            ImGui::PopTextWrapPos();
        };
        const float height = 0.45f * ImGui::GetContentRegionAvail().y;
        ImGui::BeginChild("prompt as sent", {0, height}, ImGuiChildFlags_None);
        if (ImGui::BeginTable("about the prompt", 2, ImGuiTableFlags_SizingFixedFit)) {
            ImGui::TableSetupColumn("what");
            ImGui::TableSetupColumn("value", ImGuiTableColumnFlags_WidthStretch);
            row("tokens",
                fmt::format("{} in the prompt, {} in the context; policies saw {}",
                            analysis::format_count(attributes.n_tokens), analysis::format_count(attributes.n_context),
                            analysis::format_count(attributes.visible_tokens())));
            row("cut", attributes.truncated ? "yes, in the middle of the context" : "no");
            row("end of text", fmt::format("{}", fmt::join(attributes.eos_ids, ", ")));
            row("question", attributes.question.empty() ? "none" : attributes.question);
            row("policies", attributes.query_aware ? "saw the question" : "did not see the question");
            row("template",
                attributes.chat_template.empty() ? "none: the text is sent unchanged" : attributes.chat_template);
            ImGui::EndTable();
        }
        if (const auto prompt = prompt_text(context.session, document)) {
            ImGui::PushFont(context.fonts.mono, 0);
            if (sent_of_ != prompt) sent_ = prompt->text;
            sent_of_ = prompt;
            wrapped_field("##prompt as sent text", &sent_,
                          {-1, std::max(ImGui::GetContentRegionAvail().y, 8 * ImGui::GetFontSize())},
                          ImGuiInputTextFlags_ReadOnly);
            ImGui::PopFont();
        }
        ImGui::EndChild();
        ImGui::Separator();
    }

    static size_t columns_for(size_t n, float width) {
        const float em = ImGui::GetFontSize();
        const auto most = std::max<size_t>(static_cast<size_t>(width / (15 * em)), width < 18 * em ? 1 : 2);
        const size_t rows = (n + most - 1) / most;
        return (n + rows - 1) / rows;
    }

    void draw_outputs(Context& context, const std::vector<Shown>& shown, float height) {
        const float gap = ImGui::GetFontSize();
        ImGui::BeginChild("outputs", {0, height}, ImGuiChildFlags_None);
        const float available = ImGui::GetContentRegionAvail().x;
        const std::vector<UnfinishedAnswer> stopped = stopped_in(*context.session.focus());
        const size_t n = shown.size() + stopped.size();
        const size_t columns = stacked_ ? 1 : columns_for(n, available);
        const float width = available / static_cast<float>(columns);
        const ImVec2 origin = ImGui::GetCursorScreenPos();
        const size_t form = difference_form(context, shown, width - gap);
        follow(context, shown);
        float top = origin.y;
        float lowest = origin.y;
        for (size_t i = 0; i < n; ++i) {
            if (i % columns == 0 && i > 0) top = lowest + gap / 2;
            const float left = origin.x + width * static_cast<float>(i % columns);
            const bool is_stopped = i >= shown.size();
            // Clips a word that is wider than its column.
            ImGui::PushClipRect({left - gap / 2, top}, {left + width - gap / 2, FLT_MAX}, true);
            lowest =
                std::max(lowest, is_stopped ? draw_stopped(context, stopped[i - shown.size()], {left, top}, width - gap)
                                            : draw_output(context, shown[i], {left, top}, width - gap, form));
            ImGui::PopClipRect();
            if (!is_stopped && shown[i].run == followed_) ImGui::SetScrollY(top - origin.y);
        }
        ImGui::SetCursorScreenPos(origin);
        ImGui::Dummy({1, lowest - origin.y});
        let_go(shown);
        text_height_ = lowest - origin.y + gap;
        ImGui::EndChild();
    }

    /// Scrolls to a run that was selected in another view, or to the first run that starts to answer.
    void follow(const Context& context, const std::vector<Shown>& shown) {
        const RunKey selected = context.session.cursor().run;
        const RunKey before = std::exchange(seen_, selected);
        if (before.valid() && selected != before) followed_ = selected;
        const auto first =
            std::ranges::find_if(shown, [&](const Shown& one) { return partial_answer(context, one.run) != nullptr; });
        const RunKey answering = first == shown.end() ? RunKey{} : first->run;
        const bool is_new = answering.document != answering_.document || answering.prompt != answering_.prompt;
        if (answering.valid() && is_new) followed_ = answering;
        answering_ = answering;
    }

    void let_go(const std::vector<Shown>& shown) {
        const ImGuiIO& io = ImGui::GetIO();
        const bool is_moved = ImGui::IsWindowHovered(ImGuiHoveredFlags_AllowWhenBlockedByActiveItem) &&
                              (io.MouseWheel != 0 || ImGui::IsMouseDown(ImGuiMouseButton_Left));
        const bool is_read =
            std::ranges::all_of(shown, [](const Shown& one) { return one.output || !one.error.empty(); });
        if (is_moved || (is_read && !answering_.valid())) followed_ = {};
    }

    static std::string why_empty(const Context& context, const RunKey& key) {
        const RunAt at = context.session.at(key);
        if (at.reader->is_in_file(at.prompt, at.run)) return "empty answer";
        if (context.session.document(key)->is_what_if(key.run))
            return "a what-if run has no answer. Decode in What-if generates an answer";
        const bool is_under_way = context.engine && context.engine->status().state == EngineStatus::State::running;
        return is_under_way ? "the answer appears while it is decoded"
                            : "stopped before its answer. Repeat the command that started it to continue";
    }

    static const PartialAnswer* partial_answer(const Context& context, const RunKey& run) {
        if (!context.engine) return nullptr;
        const auto& all = context.engine->partial_answers();
        const auto found = std::ranges::find_if(all, [&](const auto& each) { return each.key == run; });
        return found == all.end() ? nullptr : &*found;
    }

    /// Draws the part of an answer that is decoded. Returns the lower edge.
    static float draw_partial_answer(const Context& context, const std::string& text, bool has_ended, ImVec2 at,
                                     float width, float line) {
        AnswerOutput so_far;
        so_far.text = text + (has_ended ? "" : " …");
        so_far.words = split_words(so_far.text);
        ImGui::LogText("%s\n", so_far.text.c_str());
        return draw_answer_with_differences(context, so_far, at, width, line, [](int) {});
    }

    /// Draws a wrapped line and moves `at` below the line.
    static void draw_note(const std::string& text, const ImVec4& color, ImVec2& at, float width) {
        ImGui::GetWindowDrawList()->AddText(nullptr, 0, at, packed(color), text.c_str(), nullptr, width);
        ImGui::LogText("%s\n", text.c_str());
        at.y += ImGui::CalcTextSize(text.c_str(), nullptr, false, width).y;
    }

    std::string short_difference(const AnswerOutput& output, size_t form) const {
        return output.is_as_reference() ? "as " + reference_.name() : output.difference_texts().at(form);
    }

    std::string long_difference(const AnswerOutput& output) const {
        return fmt::format("\n{} of {} {} differ from {}; {} of the reference's {} are missing",
                           output.difference.n_extra(), output.difference.differs.size(), output.unit(),
                           reference_.possessive(), output.difference.n_missing(), output.difference.n_reference);
    }

    static std::vector<UnfinishedAnswer> stopped_in(const Document& document) {
        std::vector<UnfinishedAnswer> stopped;
        for (const UnfinishedAnswer& answer : document.unfinished_answers())
            if (answer.prompt == document.prompt) stopped.push_back(answer);
        return stopped;
    }

    /// Draws the incomplete answer of a run in an unfinished trace. Returns the lower edge.
    static float draw_stopped(const Context& context, const UnfinishedAnswer& answer, ImVec2 at, float width) {
        draw_note(answer.label, context.theme.ink, at, width);
        draw_note(answer.has_ended ? "stopped after its answer"
                                   : fmt::format("stopped: {} tokens of its answer were decoded",
                                                 analysis::format_count(answer.n_tokens)),
                  context.theme.warning, at, width);
        return draw_partial_answer(context, answer.text, answer.has_ended, at, width,
                                   std::round(1.45f * ImGui::GetFontSize()));
    }

    static float marker_side() { return 0.65f * ImGui::GetFontSize(); }
    static float label_begin() { return 1.6f * marker_side(); }

    /// Returns why a run stopped before its answer, or an empty text.
    static std::string stop_reason(const Session& session, const RunKey& run) {
        return session.document(run)->is_pending(run.run) ? session.attributes(run).message : "";
    }

    static bool is_compared(const Session& session, const Shown& one) {
        return one.output && one.output->has_reference && stop_reason(session, one.run).empty();
    }

    /// Returns the index of the longest form of difference_texts() that fits beside every answer. All answers use this
    /// form.
    static size_t difference_form(const Context& context, const std::vector<Shown>& shown, float width) {
        size_t form = 0;
        for (const Shown& one : shown) {
            if (!is_compared(context.session, one) || one.output->is_as_reference()) continue;
            const bool is_selected = one.run == context.session.cursor().run;
            if (is_selected) ImGui::PushFont(context.fonts.bold, 0);
            const float label = ImGui::CalcTextSize(one.look.run.c_str()).x;
            if (is_selected) ImGui::PopFont();
            const float room = width - label_begin() - label - ImGui::GetFontSize() / 2;
            const std::vector<std::string> texts = one.output->difference_texts();
            while (form + 1 < texts.size() && ImGui::CalcTextSize(texts[form].c_str()).x > room) ++form;
        }
        return form;
    }

    float draw_output(Context& context, const Shown& one, ImVec2 at, float width, size_t difference_form) {
        Session& session = context.session;
        ImDrawList* list = ImGui::GetWindowDrawList();
        const float em = ImGui::GetFontSize();
        const float side = marker_side();
        const float line = std::round(1.45f * em);
        ImGui::PushID(one.run.text().c_str());
        ImGui::SetCursorScreenPos(at);
        ImGui::SetNextItemAllowOverlap();  // for the badge that is drawn over this item
        if (ImGui::InvisibleButton("run", {width, line})) session.selection.select_run(one.run);
        const bool is_marked = is_compared(session, one);
        item_tooltip(full_label_for_tooltip(one.look) + (is_marked ? long_difference(*one.output) : ""));
        const float top = at.y + (em - side) / 2;
        draw_run_marker(context.theme, one.look.style, {at.x, top}, side, list);
        const float begin = label_begin();
        const bool is_selected = one.run == session.cursor().run;
        const std::string differs = is_marked ? short_difference(*one.output, difference_form) : "";
        const float beside = differs.empty() ? 0 : ImGui::CalcTextSize(differs.c_str()).x + em / 2;
        if (is_selected) ImGui::PushFont(context.fonts.bold, 0);
        std::string shown_label = label_that_fits(one.look, width - begin - beside);
        if (!one.look.trace.empty() &&
            shown_label == one.look.run)  // the trace's name matters more than the size of the difference
            shown_label = label_that_fits(one.look, width - begin);
        const float label = ImGui::CalcTextSize(shown_label.c_str()).x;
        list->PushClipRect(at, {at.x + width, at.y + line}, true);
        list->AddText({at.x + begin, at.y}, packed(context.theme.ink), shown_label.c_str());
        draw_badges_over_text(context, shown_label, {at.x + begin, at.y});
        if (is_selected) ImGui::PopFont();
        const bool has_room = begin + label + beside <= width;
        if (has_room)
            list->AddText({at.x + begin + label + em / 2, at.y}, packed(context.theme.ink_quiet), differs.c_str());
        ImGui::LogText("%s %s\n", shown_label.c_str(), has_room ? differs.c_str() : "");
        list->PopClipRect();
        at.y += line;
        const auto note = [&](const std::string& text, const ImVec4& color) { draw_note(text, color, at, width); };
        const auto question_of = [](const Document& document, int prompt) {
            return document.reader()->prompt(prompt).question;
        };
        const Document& focus = *session.focus();
        if (const std::string question = question_of(*session.document(one.run), one.run.prompt);
            question != question_of(focus, focus.prompt))  // the view's header shows this question
            note(question.empty() ? "no question" : question, context.theme.ink_quiet);
        if (one.output && !one.output->switches.empty()) note(one.output->switches, context.theme.ink_quiet);
        const PartialAnswer* partial = partial_answer(context, one.run);
        if (const std::string reason = stop_reason(session, one.run); !partial && !reason.empty())
            note(reason, context.theme.warning);
        if (!one.error.empty())
            note(one.error, context.theme.error);
        else if (!one.output)
            note("reading …", context.theme.ink_quiet);
        else if (one.output->words.empty() && partial)
            at.y = draw_partial_answer(context, partial->text, partial->has_ended, at, width, line);
        else if (one.output->words.empty())
            note(why_empty(context, one.run), context.theme.ink_quiet);
        else
            at.y = draw_answer_with_differences(context, *one.output, at, width, line,
                                                [&](int step) { take_step(context, one, step); });
        ImGui::PopID();
        return at.y;
    }

    void take_step(Context& context, const Shown& one, int step) const {
        Cursor over = context.session.cursor();
        over.run = one.run;
        over.step = step;
        context.session.set_hover(over);
        if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) context.session.selection.select_step(step);
        const auto t = static_cast<size_t>(step);
        draw_tooltip_beside(fmt::format(
            "step {}{}{}\n{}", step,
            t < one.output->kl.size() ? fmt::format(": KL to the full cache {:.4g} nats", one.output->kl[t]) : "",
            one.output->is_marked(t) ? fmt::format("; not in {} answer", reference_.possessive()) : "",
            measure_definition("kl")));
    }

    TaskSlot<AnswerOutput> outputs_;
    AnswerReference reference_;
    FigurePlot plot_;
    TaskSlot<MadeFigure> made_;
    bool stacked_ = false;
    bool prompt_open_ = false;
    FurtherQuestions further_;
    std::string sent_;  ///< text of "Prompt as sent", from which parts can be copied
    std::shared_ptr<const PromptText> sent_of_;
    float text_height_ = 0;  ///< height of the answers in the last frame, in pixels
    RunKey seen_;            ///< run that was selected in the last frame
    RunKey followed_;        ///< run to keep in view, or invalid
    RunKey answering_;       ///< first visible run whose answer is being decoded, or invalid
};

}  // namespace

ViewKind answers_view() {
    return {"answers",
            "Answers",
            "Answers side by side with their differences from a reference, and KL per decode step",
            Dock::bottom,
            Topic::results,
            make_view<AnswersView>,
            R"(
---.----.---.---
----.--..----.--
................
###.###*.###.###
##.**###.##.####
................
---.****.**.----
--.----..***.--.)"};
}

}  // namespace kvscope::gui
