#include <fmt/format.h>
#include <fmt/ranges.h>
#include <imgui.h>
#include <implot.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "analysis/table_format.h"
#include "analysis/ticks.h"
#include "app/gui/answer_text.h"
#include "app/gui/further_questions.h"
#include "app/gui/measures.h"
#include "app/gui/prompt_lines.h"
#include "app/gui/prompt_text.h"
#include "app/gui/run_label.h"
#include "app/gui/shaped_text.h"
#include "app/gui/view.h"
#include "trace/schema.h"

namespace kvscope::gui {
namespace {

/// What one run wrote, and how far its distributions are from the full cache's.
struct Output {
    std::string text;
    std::vector<Word> words;
    std::vector<StepPlace> steps;    ///< of output_ids
    std::vector<float> kl;           ///< (T) or empty
    std::vector<uint8_t> agreement;  ///< (T) or empty
    size_t n_differ = 0;             ///< words that are not the full run's
    bool has_reference = false;
};

Output read_output(const trace::Reader& reader, const RunKey& key) {
    namespace schema = trace::schema;
    const auto place = trace::Place::of_run(key.prompt, key.run);
    Output out;
    out.text = reader.run(key.prompt, key.run).output_text;
    out.words = words_of(out.text);
    const auto full = reader.full_run(key.prompt);
    if (full && *full != key.run && !out.text.empty()) {
        mark_differences(out.text, out.words, reader.run(key.prompt, *full).output_text);
        out.has_reference = true;
    }
    out.n_differ =
        static_cast<size_t>(std::count_if(out.words.begin(), out.words.end(), [](const Word& w) { return w.differs; }));
    if (reader.has(place, schema::run::output_ids)) {
        std::unordered_map<int32_t, std::string> pieces;
        const auto ids = reader.token_ids(key.prompt);
        const auto texts = reader.token_text(key.prompt);
        for (size_t i = 0; i < ids.size() && i < texts.size(); ++i) pieces.emplace(ids[i], texts[i]);
        out.steps = place_steps(out.text, reader.read<int32_t>(place, schema::run::output_ids), pieces);
    }
    if (reader.has(place, schema::run::step_kl)) out.kl = reader.read<float>(place, schema::run::step_kl);
    if (reader.has(place, schema::run::step_agreement))
        out.agreement = reader.read<uint8_t>(place, schema::run::step_agreement);
    return out;
}

/// The first characters of a line, up to its first line break, with "…" where that is not all.
std::string beginning_that_fits(const std::string& text, float width) {
    const size_t line = std::min(text.find('\n'), text.size());
    if (line == text.size() && text_width(text) <= width) return text;
    constexpr size_t most = 400;  // bytes; no line of the window is as long
    std::vector<size_t> ends;     // of characters
    for (size_t end = 1; end <= std::min(line, most); ++end)
        if (end == text.size() || (static_cast<unsigned char>(text[end]) & 0xc0) != 0x80) ends.push_back(end);
    const auto beginning = [&](size_t end) { return text.substr(0, end) + "…"; };
    const auto too_wide =
        std::partition_point(ends.begin(), ends.end(), [&](size_t end) { return text_width(beginning(end)) <= width; });
    return too_wide == ends.begin() ? "…" : beginning(*std::prev(too_wide));
}

/// Steps are whole.
int format_step(double value, char* text, int size, void*) {
    const double whole = std::round(value);
    const bool is_step = std::abs(value - whole) < 1e-6 && whole >= 0;
    if (!is_step) return std::snprintf(text, static_cast<size_t>(size), "%s", "");
    return std::snprintf(text, static_cast<size_t>(size), "%.0f", whole);
}

/// Outputs side by side, what differs from the full cache's marked, and KL per step beneath.
class AnswersView : public View {
 public:
    void draw(Context& context) override {
        Session& session = context.session;
        const Document* focus = session.focus();
        if (!focus) {
            draw_nothing(context, "Open a trace or run the demo to read what each run answered.");
            return;
        }
        if (focus->prompt >= focus->reader()->n_prompts()) {
            draw_nothing(context, why_no_prompt(*focus));
            return;
        }
        draw_header(context, *focus);
        if (prompt_open_) draw_prompt(context, *focus);
        const auto shown = outputs(context);
        if (shown.empty()) {
            draw_nothing(context, "No run is shown: tick one in Runs, or press 0 for all of them.");
            return;
        }
        const float em = ImGui::GetFontSize();
        const bool has_kl = std::any_of(shown.begin(), shown.end(),
                                        [](const Shown& one) { return one.output && !one.output->kl.empty(); });
        const float ask = further_.height(context, ImGui::GetContentRegionAvail().y);
        const float room = ImGui::GetContentRegionAvail().y - ask;
        const float plot = has_kl && room > 11 * em
                               ? std::clamp(room - text_height_, std::min(0.42f * room, 14 * em), 0.7f * room)
                               : 0;
        draw_outputs(context, shown, std::max(room - plot - (plot > 0 ? ImGui::GetStyle().ItemSpacing.y : 0), 3 * em));
        if (plot > 0) draw_steps(context, shown, plot);
        if (ask > 0) further_.draw(context);
    }

    std::optional<FigureRequest> figure(const Session& session) const override {
        const Document* focus = session.focus();
        if (!focus) return std::nullopt;
        FigureRequest request{focus->id(), "step-kl", {}};
        request.options.prompt = focus->prompt;
        for (const RunKey& key : session.visible_runs()) {
            if (key.document == focus->id() && !session.attributes(key).output_text.empty())
                request.options.runs.push_back(std::to_string(key.run));
        }
        if (request.options.runs.empty()) return std::nullopt;
        return request;
    }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"hover, click or drag along the bars", "a decode step; its word lights up in every answer"},
                {"wheel over the bars; double-click, F", "zoom into steps; all of them"},
                {"click a word", "the step that wrote it"},
                {"underlined", "words that the full cache's answer has not"},
                {"Prompt as sent", "the exact text, template, cut and end-of-text ids"}};
    }

    void fit() override { first_step_ = last_step_ = 0; }
    void save(nlohmann::json& state) const override { state = {{"stacked", stacked_}, {"prompt", prompt_open_}}; }
    void load(const nlohmann::json& state) override {
        stacked_ = state.value("stacked", false);
        prompt_open_ = state.value("prompt", false);
    }

 private:
    struct Shown {
        RunKey run;
        RunLook look;
        std::shared_ptr<const Output> output;
        std::string error;
    };

    std::vector<Shown> outputs(Context& context) const {
        Session& session = context.session;
        std::vector<Shown> all;
        for (const RunKey& key : session.visible_runs(true)) {
            const auto answer = session.tasks.ask<Output>(
                fmt::format("output {}.{}.{}", key.document, key.prompt, key.run), session.stamp(key),
                [reader = session.document(key)->reader(), key] { return read_output(*reader, key); });
            all.push_back({key, session.look(key), answer.value, answer.error});
        }
        return all;
    }

    // ---- the prompt ------------------------------------------------------------------------------------------------

    void draw_header(Context& context, const Document& document) {
        const auto& attributes = document.reader()->prompt(document.prompt);
        int how = stacked_ ? 1 : 0;
        ImGui::SetNextItemWidth(8 * ImGui::GetFontSize());
        if (ImGui::Combo("##answers how", &how, "side by side\0below each other\0")) stacked_ = how == 1;
        ImGui::SameLine();
        ImGui::PushStyleColor(ImGuiCol_Text, prompt_open_ ? context.theme.accent : context.theme.ink);
        if (ImGui::Button("Prompt as sent")) prompt_open_ = !prompt_open_;
        ImGui::PopStyleColor();
        ImGui::SameLine();
        ImGui::AlignTextToFramePadding();
        if (attributes.question.empty()) {
            ImGui::TextDisabled("no question apart from the context");
        } else {
            const char* seen = attributes.query_aware ? "policies saw it" : "policies did not see it";
            const float space = ImGui::GetStyle().ItemSpacing.x;
            const float room = ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(seen).x - space;
            text_item(beginning_that_fits(attributes.question, room));
            ImGui::SetItemTooltip("%s", attributes.question.c_str());
            ImGui::SameLine();
            ImGui::TextDisabled("%s", seen);
        }
        if (attributes.truncated) {
            ImGui::SameLine();
            ImGui::TextColored(context.theme.warning, "the prompt was cut");
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
                fmt::format("{}, of them {} context; policies saw {}", analysis::format_count(attributes.n_tokens),
                            analysis::format_count(attributes.n_context),
                            analysis::format_count(attributes.visible_tokens())));
            row("cut", attributes.truncated ? "yes, in the middle of the context" : "no");
            row("end of text", fmt::format("{}", fmt::join(attributes.eos_ids, ", ")));
            row("question", attributes.question.empty() ? "none" : attributes.question);
            row("policies", attributes.query_aware ? "saw the question" : "did not see the question");
            row("template",
                attributes.chat_template.empty() ? "none: the text is sent as it is" : attributes.chat_template);
            ImGui::EndTable();
        }
        if (const auto prompt = prompt_text(context.session, document)) {
            ImGui::PushFont(context.fonts.mono, 0);
            if (sent_of_ != prompt) sent_ = prompt->text;
            sent_of_ = prompt;
            ImGui::InputTextMultiline("##prompt as sent text", &sent_,
                                      {-1, std::max(ImGui::GetContentRegionAvail().y, 8 * ImGui::GetFontSize())},
                                      ImGuiInputTextFlags_ReadOnly | ImGuiInputTextFlags_WordWrap);
            ImGui::PopFont();
        }
        ImGui::EndChild();
        ImGui::Separator();
    }

    // ---- the outputs -----------------------------------------------------------------------------------------------

    /// Side by side as many as can be read, and no fewer than two; the others in further rows.
    static size_t columns_for(size_t n, float width) {
        const auto most = std::max<size_t>(static_cast<size_t>(width / (15 * ImGui::GetFontSize())), 2);
        const size_t rows = (n + most - 1) / most;
        return (n + rows - 1) / rows;
    }

    void draw_outputs(Context& context, const std::vector<Shown>& shown, float height) {
        const float gap = ImGui::GetFontSize();
        ImGui::BeginChild("outputs", {0, height}, ImGuiChildFlags_None);
        const float available = ImGui::GetContentRegionAvail().x;
        const size_t columns = stacked_ ? 1 : columns_for(shown.size(), available);
        const float width = available / static_cast<float>(columns);
        const ImVec2 origin = ImGui::GetCursorScreenPos();
        const RunKey& selected = context.session.cursor().run;
        float top = origin.y;
        float lowest = origin.y;
        for (size_t i = 0; i < shown.size(); ++i) {
            if (i % columns == 0 && i > 0) top = lowest + gap / 2;
            const float left = origin.x + width * static_cast<float>(i % columns);
            lowest = std::max(lowest, draw_output(context, shown[i], {left, top}, width - gap));
            if (shown[i].run == selected && seen_.valid() && selected != seen_) ImGui::SetScrollY(top - origin.y);
        }
        ImGui::SetCursorScreenPos(origin);
        ImGui::Dummy({1, lowest - origin.y});
        seen_ = selected;
        text_height_ = lowest - origin.y + gap;
        ImGui::EndChild();
    }

    static std::string why_empty(const Session& session, const RunKey& key) {
        const trace::Reader& reader = *session.document(key)->reader();
        if (reader.is_in_file(key.prompt, key.run)) return "it answered nothing";
        return reader.complete() ? "a what-if has kept sets but no answer: Decode in What-if gets one"
                                 : "its answer appears when it is decoded";
    }

    static std::string words_text(const Output& output) {
        return fmt::format("\n{} of {} words are not the full cache's", output.n_differ, output.words.size());
    }

    /// @returns where it ends
    float draw_output(Context& context, const Shown& one, ImVec2 at, float width) {
        Session& session = context.session;
        ImDrawList* list = ImGui::GetWindowDrawList();
        const float em = ImGui::GetFontSize();
        const float side = 0.65f * em;
        const float line = std::round(1.45f * em);
        ImGui::PushID(one.run.document);
        ImGui::PushID(one.run.run);
        ImGui::SetCursorScreenPos(at);
        if (ImGui::InvisibleButton("run", {width, line})) session.select_run(one.run);
        const bool has_words = one.output && one.output->has_reference;
        ImGui::SetItemTooltip("%s", (one.look.label + (has_words ? words_text(*one.output) : "")).c_str());
        const float top = at.y + (em - side) / 2;
        list->AddRectFilled({at.x, top}, {at.x + side, top + side},
                            packed(on_ground(one.look.style.color, context.theme)));
        std::string differs;
        if (has_words) {
            differs = one.output->n_differ == 0
                          ? "as full"
                          : fmt::format("{}/{} differ", one.output->n_differ, one.output->words.size());
        }
        const float begin = 1.6f * side;
        const float beside = differs.empty() ? 0 : ImGui::CalcTextSize(differs.c_str()).x + em / 2;
        const bool is_selected = one.run == session.cursor().run;
        if (is_selected) ImGui::PushFont(context.fonts.bold, 0);
        std::string shown_label = label_that_fits(one.look, width - begin - beside);
        if (!one.look.trace.empty() && shown_label == one.look.run)  // which trace says more than how much differs
            shown_label = label_that_fits(one.look, width - begin);
        const float label = ImGui::CalcTextSize(shown_label.c_str()).x;
        list->PushClipRect(at, {at.x + width, at.y + line}, true);
        list->AddText({at.x + begin, at.y}, packed(context.theme.ink), shown_label.c_str());
        if (is_selected) ImGui::PopFont();
        if (begin + label + beside <= width)
            list->AddText({at.x + begin + label + em / 2, at.y}, packed(context.theme.ink_quiet), differs.c_str());
        list->PopClipRect();
        at.y += line;
        const auto note = [&](const std::string& text, const ImVec4& color) {
            list->AddText(nullptr, 0, at, packed(color), text.c_str(), nullptr, width);
            at.y += ImGui::CalcTextSize(text.c_str(), nullptr, false, width).y;
        };
        if (!one.error.empty())
            note(one.error, context.theme.error);
        else if (!one.output)
            note("reading …", context.theme.ink_quiet);
        else if (one.output->words.empty())
            note(why_empty(session, one.run), context.theme.ink_quiet);
        else
            at.y = draw_words(context, one, at, width, line);
        ImGui::PopID();
        ImGui::PopID();
        return at.y;
    }

    /// Width of a text's first bytes, up to whole characters.
    static float width_before(std::string_view text, size_t n_bytes) {
        while (n_bytes < text.size() && (static_cast<unsigned char>(text[n_bytes]) & 0xc0) == 0x80) ++n_bytes;
        return text_width(text.substr(0, n_bytes));
    }

    struct WordBox {
        const Word* word = nullptr;
        std::string_view text;
        float x = 0;
        float y = 0;
        float width = 0;
    };

    /// Words in lines; neighbours in a script that is written from right to left stand so.
    static std::vector<WordBox> place_words(const Output& output, ImVec2 at, float width, float line) {
        const float space = ImGui::CalcTextSize(" ").x;
        std::vector<WordBox> boxes;
        float x = at.x;
        float y = at.y;
        for (const Word& word : output.words) {
            const std::string_view text = std::string_view(output.text).substr(word.begin, word.end - word.begin);
            const float w = text_width(text);
            if (word.line_breaks > 0 && word.begin > 0) {
                x = at.x;
                y += line * std::min(static_cast<float>(word.line_breaks), 2.0f);
            } else if (x > at.x && x + w > at.x + width) {
                x = at.x;
                y += line;
            }
            boxes.push_back({&word, text, x, y, w});
            const bool is_glued = &word != &output.words.back() && (&word + 1)->glued;
            x += w + (is_glued ? 0 : space);
        }
        for (size_t i = 0; i < boxes.size(); ++i) {
            size_t j = i;
            while (j < boxes.size() && boxes[j].y == boxes[i].y && is_right_to_left(boxes[j].text)) ++j;
            float next = boxes[i].x;
            for (size_t k = j; k-- > i;) {
                boxes[k].x = next;
                next += boxes[k].width + space;
            }
            if (j > i) i = j - 1;
        }
        return boxes;
    }

    static float draw_words(Context& context, const Shown& one, ImVec2 at, float width, float line) {
        Session& session = context.session;
        ImDrawList* list = ImGui::GetWindowDrawList();
        const Output& output = *one.output;
        const float em = ImGui::GetFontSize();
        const ImVec2 mouse = ImGui::GetMousePos();
        const bool hovered = ImGui::IsWindowHovered();
        const auto holds = [&](const Word& word, int step) {
            if (step < 0 || static_cast<size_t>(step) >= output.steps.size()) return false;
            const StepPlace& place = output.steps[static_cast<size_t>(step)];
            return place.begin < word.end && place.end > word.begin;
        };
        const std::vector<WordBox> boxes = place_words(output, at, width, line);
        for (const WordBox& box : boxes) {
            const Word& word = *box.word;
            const ImVec2 from{box.x - 1, box.y};
            const ImVec2 to{box.x + box.width + 1, box.y + line - 1};
            const auto highlight = [&](int step, const ImVec4& color, float alpha) {
                if (!holds(word, step)) return;
                const StepPlace& place = output.steps[static_cast<size_t>(step)];
                const size_t first = place.begin > word.begin ? place.begin - word.begin : 0;
                const size_t last = std::min(place.end - word.begin, box.text.size());
                list->AddRectFilled({box.x + width_before(box.text, first) - 1, from.y},
                                    {box.x + width_before(box.text, last) + 1, to.y}, packed(color, alpha), 2);
            };
            highlight(session.cursor().step, context.theme.accent, 0.45f);
            highlight(session.hover().step, context.theme.hover, 0.2f);
            draw_text(list, {box.x, box.y + (line - em) / 2 - 1},
                      packed(word.differs ? context.theme.warning : context.theme.ink), box.text);
            if (word.differs)
                list->AddLine({box.x, to.y - 1}, {box.x + box.width, to.y - 1}, packed(context.theme.warning, 0.7f));
            if (hovered && mouse.x >= from.x && mouse.x < to.x + 2 && mouse.y >= from.y && mouse.y < box.y + line)
                take_word(context, one, word);
        }
        return (boxes.empty() ? at.y : boxes.back().y) + line;
    }

    static void take_word(Context& context, const Shown& one, const Word& word) {
        const auto& steps = one.output->steps;
        const auto first = std::find_if(steps.begin(), steps.end(), [&](const StepPlace& place) {
            return place.begin < word.end && place.end > word.begin;
        });
        if (first == steps.end()) return;
        const int step = static_cast<int>(first - steps.begin());
        Cursor over = context.session.cursor();
        over.run = one.run;
        over.step = step;
        context.session.set_hover(over);
        if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) context.session.select_step(step);
        const auto t = static_cast<size_t>(step);
        ImGui::SetTooltip(
            "%s",
            fmt::format(
                "step {}{}{}\n{}", step,
                t < one.output->kl.size() ? fmt::format(": KL to the full cache {:.4g} nats", one.output->kl[t]) : "",
                word.differs ? "; not in the full cache's answer" : "", measure_definition("kl"))
                .c_str());
    }

    // ---- KL per step -----------------------------------------------------------------------------------------------

    /// The wheel zooms the steps about the mouse; dragging goes through them.
    void zoom_steps(double n_steps) {
        if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) return fit();
        const float wheel = ImGui::GetIO().MouseWheel;
        if (wheel == 0) return;
        const double at = ImPlot::GetPlotMousePos().x + 0.5;
        const double span = last_step_ - first_step_;
        const double zoomed = std::clamp(span * std::pow(0.9, wheel), std::min(4.0, n_steps), n_steps);
        first_step_ = std::clamp(at - (at - first_step_) / span * zoomed, 0.0, n_steps - zoomed);
        last_step_ = first_step_ + zoomed;
    }

    void draw_steps(Context& context, const std::vector<Shown>& shown, float height) {
        Session& session = context.session;
        size_t n_steps = 0;
        size_t n_runs = 0;
        float most = 0;
        for (const Shown& one : shown) {
            if (!one.output || one.output->kl.empty() || is_full(session, one.run)) continue;
            ++n_runs;
            n_steps = std::max(n_steps, one.output->kl.size());
            for (const float kl : one.output->kl) most = std::max(most, kl);
        }
        if (n_runs == 0) return;
        constexpr ImPlotFlags flags = ImPlotFlags_NoTitle | ImPlotFlags_NoLegend | ImPlotFlags_NoMouseText |
                                      ImPlotFlags_NoMenus | ImPlotFlags_NoFrame | ImPlotFlags_NoInputs;
        if (!ImPlot::BeginPlot("##answers steps", {-1, height}, flags)) return;
        ImPlot::SetupAxis(ImAxis_X1, "decode step", ImPlotAxisFlags_NoGridLines);
        const bool is_low = height < 9 * ImGui::GetFontSize();
        ImPlot::SetupAxis(ImAxis_Y1, is_low ? "KL, nats" : "KL to full, nats");
        const auto all = static_cast<double>(n_steps);
        if (first_step_ >= last_step_ || last_step_ > all) {
            first_step_ = 0;
            last_step_ = all;
        }
        ImPlot::SetupAxisLimits(ImAxis_X1, first_step_ - 0.5, last_step_ - 0.5, ImPlotCond_Always);
        ImPlot::SetupAxisLimits(ImAxis_Y1, 0, most > 0 ? 1.05 * static_cast<double>(most) : 1, ImPlotCond_Always);
        ImPlot::SetupAxisFormat(ImAxis_X1, format_step);
        set_kl_ticks(most, height);
        ImPlot::SetupFinish();
        draw_step_band(session.cursor().step, n_steps, packed(context.theme.accent, 0.2f));
        draw_step_band(session.hover().step, n_steps, packed(context.theme.hover, 0.08f));
        const double each = 0.86 / static_cast<double>(n_runs);
        double left = -0.43;
        for (const Shown& one : shown) {
            if (!one.output || one.output->kl.empty() || is_full(session, one.run)) continue;
            std::vector<double> x;
            std::vector<double> y;
            for (size_t t = 0; t < one.output->kl.size(); ++t) {
                x.push_back(static_cast<double>(t) + left + each / 2);
                y.push_back(static_cast<double>(one.output->kl[t]));
            }
            const std::string id = fmt::format("{}##{}.{}", one.look.label, one.run.document, one.run.run);
            ImPlot::PlotBars(id.c_str(), x.data(), y.data(), static_cast<int>(x.size()), each,
                             {ImPlotProp_FillColor, on_ground(one.look.style.color, context.theme)});
            left += each;
        }
        scrub(context, shown, n_steps);
        ImPlot::EndPlot();
    }

    /// As many as stand apart in a plot of this height.
    static void set_kl_ticks(float most, float height) {
        if (most <= 0) return;
        analysis::Axis axis;
        axis.max = static_cast<double>(most);
        const float em = ImGui::GetFontSize();
        const auto n = static_cast<size_t>(std::max((height - 4 * em) / (1.8f * em), 2.0f));
        std::vector<double> values;
        std::vector<std::string> labels;
        for (auto& [value, label] : analysis::ticks_for(axis, n).ticks) {
            values.push_back(value);
            labels.push_back(std::move(label));
        }
        std::vector<const char*> texts;
        for (const std::string& label : labels) texts.push_back(label.c_str());
        ImPlot::SetupAxisTicks(ImAxis_Y1, values.data(), static_cast<int>(values.size()), texts.data());
    }

    static bool is_full(const Session& session, const RunKey& key) { return session.attributes(key).policy == "full"; }

    static void draw_step_band(int step, size_t n_steps, ImU32 color) {
        if (step < 0 || static_cast<size_t>(step) >= n_steps) return;
        const float left = ImPlot::PlotToPixels(step - 0.5, 0.0).x;
        const float right = ImPlot::PlotToPixels(step + 0.5, 0.0).x;
        const ImVec2 from = ImPlot::GetPlotPos();
        ImPlot::GetPlotDrawList()->AddRectFilled({left, from.y}, {right, from.y + ImPlot::GetPlotSize().y}, color);
    }

    void scrub(Context& context, const std::vector<Shown>& shown, size_t n_steps) {
        Session& session = context.session;
        const ImVec2 from = ImPlot::GetPlotPos();
        const ImVec2 size = ImPlot::GetPlotSize();
        const ImVec2 mouse = ImGui::GetMousePos();
        if (!ImGui::IsWindowHovered() || mouse.x < from.x || mouse.x >= from.x + size.x || mouse.y < from.y ||
            mouse.y >= from.y + size.y)
            return;
        const int step =
            std::clamp(static_cast<int>(std::lround(ImPlot::GetPlotMousePos().x)), 0, static_cast<int>(n_steps) - 1);
        zoom_steps(static_cast<double>(n_steps));
        Cursor over = session.cursor();
        over.step = step;
        session.set_hover(over);
        if (ImGui::IsMouseDown(ImGuiMouseButton_Left) && session.cursor().step != step) session.select_step(step);
        const auto t = static_cast<size_t>(step);
        ImGui::BeginTooltip();
        ImGui::Text("step %d: KL(full ‖ run) of the distributions it is drawn from", step);
        ImGui::TextDisabled("%s", measure_definition("kl"));
        const float side = 0.65f * ImGui::GetFontSize();
        for (const Shown& one : shown) {
            if (!one.output || t >= one.output->kl.size() || is_full(session, one.run)) continue;
            const ImVec2 at = ImGui::GetCursorScreenPos();
            const float top = at.y + (ImGui::GetTextLineHeight() - side) / 2;
            ImGui::GetWindowDrawList()->AddRectFilled({at.x, top}, {at.x + side, top + side},
                                                      packed(on_ground(one.look.style.color, context.theme)));
            ImGui::Dummy({side, side});
            ImGui::SameLine();
            const bool other_token = t < one.output->agreement.size() && one.output->agreement[t] == 0;
            ImGui::TextUnformatted(fmt::format("{}  {:.4g} nats{}", one.look.label, one.output->kl[t],
                                               other_token ? ", another token" : "")
                                       .c_str());
        }
        ImGui::EndTooltip();
    }

    double first_step_ = 0;  ///< of those in view, before the one that is `last_step_`; alike: all
    double last_step_ = 0;
    bool stacked_ = false;
    bool prompt_open_ = false;
    FurtherQuestions further_;
    std::string sent_;  ///< the prompt, in a field of which a part can be copied
    std::shared_ptr<const PromptText> sent_of_;
    float text_height_ = 0;  ///< of the answers, in the frame before
    RunKey seen_;            ///< selected run that was brought into view last
};

}  // namespace

ViewKind answers_view() {
    return {"answers", "Answers",
            "Outputs side by side, what differs from the full cache's answer, and KL per decode step", Dock::bottom,
            []() -> std::unique_ptr<View> { return std::make_unique<AnswersView>(); }};
}

}  // namespace kvscope::gui
