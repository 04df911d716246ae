#include <fmt/format.h>
#include <imgui.h>

#include <cmath>

#include "analysis/drawing/figure_definition.h"
#include "analysis/tables/table_format.h"
#include "app/gui/drawing/run_marks.h"
#include "app/gui/figure/what_if_curve_plot.h"
#include "app/gui/session/engine_session.h"
#include "app/gui/view/copy_command.h"
#include "app/gui/view/file_dialog.h"
#include "app/gui/view/parameter_form.h"
#include "app/gui/view/run_label.h"
#include "app/gui/view/view.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/live_what_if.h"
#include "app/gui/view_data/measure_definitions.h"

namespace kvscope::gui {
namespace {

std::string sign_of(double value) { return value > 0 ? "+" : value < 0 ? "−" : "±"; }

std::string points_text(double before, double after) {
    const double points = 100 * (after - before);
    return fmt::format("{}{:.1f} pt", sign_of(points), std::abs(points));
}

class WhatIfView : public View {
 public:
    void draw(Context& context) override {
        Session& session = context.session;
        what_if_.update(session, context.engine);
        if (!what_if_.has_source())
            return draw_nothing(context, session.documents().empty()
                                             ? open_trace_or_demo() + ", then select a run to change its budget."
                                             : what_if_.refusal());
        draw_source(context);
        if (!what_if_.refusal().empty()) {
            ImGui::TextWrapped("%s", what_if_.refusal().c_str());
            draw_prefill_button(context);
            return;
        }
        // Items above the sliders must not appear or disappear while the user moves a slider.
        draw_budget(context);
        draw_summary(context);
        draw_buttons(context);
        curves_.draw(context, what_if_);
        ImGui::Separator();
        for (const auto& parameter : what_if_.definition().parameters) {
            ParameterField field{&what_if_.recorded_values(), what_if_.obstacle(parameter), 0};
            if (parameter.name == "window") field.most = what_if_.widest_window();
            edit_parameter(parameter, what_if_.values(), context.theme, field);
        }
        draw_prefill_button(context);
        what_if_.follow_widgets(session);
    }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {
            {"drag a slider", "let the policy choose tokens again with that value; all views show the resulting run"},
            {"Ctrl-click a slider", "type the number"},
            {"click a curve", "move the slider there; the curve of another run also selects that run"},
            {"click a line below the curves", "move the slider to the place where the curve reaches the percentage"},
            {"F", "show the whole plot"},
            {"Decode", "runs the what-if to get its answer and its divergence from the full cache"},
            {"Keep", "keeps this what-if; the next change starts another what-if"},
            {"grey", "the parameter affects the scores themselves; repeat the prefill to change it"}};
    }

    std::vector<std::string> commands() const override {
        return {
            "Keep", "Reset", "Decode", "Show both runs", "Copy command", "Discard this what-if", "Repeat the prefill"};
    }

    void fit() override { curves_.fit(); }
    void save(nlohmann::json& state) const override { curves_.save(state); }
    void load(const nlohmann::json& state) override { curves_.load(state); }

 private:
    void draw_source(Context& context) {
        const RunLook look = context.session.look(what_if_.source());
        draw_inline_run_marker(context.theme, look.style);
        ImGui::PushFont(context.fonts.bold, 0);
        const char* from = what_if_.has_prefill() ? "prefill in memory" : "from the trace";
        const float whole = ImGui::GetContentRegionAvail().x;
        const float beside = whole - ImGui::CalcTextSize(from).x - ImGui::GetStyle().ItemSpacing.x;
        const bool in_one_line = ImGui::CalcTextSize(look.run.c_str()).x <= beside;
        const std::string label = label_that_fits(look, in_one_line ? beside : whole);
        ImGui::TextUnformatted(label.c_str());
        if (ImGui::IsItemClicked()) context.session.selection.select_run(what_if_.source());
        ImGui::SetItemTooltip("%s\n%s\n%s", look.label.c_str(), what_if_.definition().title.c_str(),
                              what_if_.definition().paper.c_str());
        draw_badges_over_text(context, label, ImGui::GetItemRectMin());
        ImGui::PopFont();
        if (in_one_line) ImGui::SameLine();
        ImGui::TextDisabled("%s", from);
    }

    void draw_budget(Context& context) {
        const int64_t low = what_if_.smallest_budget_to_try();
        const int64_t high = std::max<int64_t>(what_if_.n_tokens(), 1);
        const std::string obstacle = what_if_.budget_obstacle();
        const bool differs = what_if_.budget() != what_if_.recorded_budget();
        ImGui::AlignTextToFramePadding();
        ImGui::PushStyleColor(ImGuiCol_Text, differs ? context.theme.accent : context.theme.ink);
        ImGui::TextUnformatted("budget");
        ImGui::PopStyleColor();
        item_tooltip(is_of_bytes() ? "share of the full cache's bytes"
                                   : "entries kept per KV head and layer, including window and sinks");
        const float em = ImGui::GetFontSize();
        const float number = 4.5f * em;
        const bool is_narrow =
            ImGui::GetContentRegionAvail().x < 22 * em;  // in a narrow view, the slider has its own line
        ImGui::SameLine(6.2f * em);
        ImGui::BeginDisabled(!obstacle.empty());
        ImGui::BeginGroup();
        const auto slider = [&](float width) {
            ImGui::SetNextItemWidth(width);
            ImGui::SliderScalar("##budget", ImGuiDataType_S64, &what_if_.budget(), &low, &high, "",
                                ImGuiSliderFlags_Logarithmic | ImGuiSliderFlags_AlwaysClamp);
            draw_tick(context, low, high);
        };
        if (!is_narrow) {
            slider(ImGui::GetContentRegionAvail().x - number - ImGui::GetStyle().ItemSpacing.x);
            ImGui::SameLine();
        }
        ImGui::SetNextItemWidth(is_narrow ? -FLT_MIN : number);
        ImGui::PushFont(context.fonts.mono, 0);
        edit_budget(low, high);
        ImGui::PopFont();
        ImGui::EndGroup();
        if (is_narrow) slider(-FLT_MIN);
        ImGui::EndDisabled();
        if (!obstacle.empty() && ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
            ImGui::SetTooltip("%s", obstacle.c_str());
        const bool is_possible = what_if_.error().empty();
        wrapped_text(is_possible ? budget_in_words(high) : what_if_.error(),
                     is_possible ? context.theme.ink_quiet : context.theme.error);
    }

    std::string budget_in_words(int64_t most) {
        const double share = std::min(static_cast<double>(what_if_.budget()) / static_cast<double>(most), 1.0);
        const double recorded_share = static_cast<double>(what_if_.recorded_budget()) / static_cast<double>(most);
        if (is_of_bytes())
            return fmt::format(
                "every token, in {:.1f} % of the full cache's bytes ({:.1f} % saved); recorded: {:.1f} %", 100 * share,
                100 - 100 * share, 100 * recorded_share);
        return fmt::format("{:.1f} % of {} entries kept, {:.1f} % removed; recorded: {}", 100 * share,
                           analysis::format_count(most), 100 - 100 * share,
                           analysis::format_count(what_if_.recorded_budget()));
    }

    bool is_of_bytes() const { return what_if_.budget_of() == policies::BudgetOf::bytes; }

    /// Draws the field for the budget in entries, or in percent of the full cache's bytes. @param most number of
    /// entries in the full cache
    void edit_budget(int64_t least, int64_t most) {
        if (!is_of_bytes()) {
            if (ImGui::InputScalar("##budget number", ImGuiDataType_S64, &what_if_.budget()))
                what_if_.budget() = std::clamp(what_if_.budget(), least, most);
            return;
        }
        double per_cent = 100 * static_cast<double>(what_if_.budget()) / static_cast<double>(most);
        if (ImGui::InputDouble("##budget number", &per_cent, 0, 0, "%.1f %%"))
            what_if_.budget() =
                std::clamp(static_cast<int64_t>(std::llround(per_cent / 100 * static_cast<double>(most))), least, most);
    }

    void draw_tick(const Context& context, int64_t low, int64_t high) const {
        if (high <= low) return;
        const ImVec2 min = ImGui::GetItemRectMin();
        const ImVec2 max = ImGui::GetItemRectMax();
        const double at = std::log(static_cast<double>(what_if_.recorded_budget()) / static_cast<double>(low)) /
                          std::log(static_cast<double>(high) / static_cast<double>(low));
        const float x = min.x + static_cast<float>(at) * (max.x - min.x);
        ImGui::GetWindowDrawList()->AddLine({x, max.y - 4 * context.scale}, {x, max.y}, packed(context.theme.ink_quiet),
                                            2 * context.scale);
    }

    void draw_prefill_button(Context& context) {
        if (!context.engine || !what_if_.wants_prefill()) return;
        const EngineStatus status = context.engine->status();
        const Document& document = *context.session.document(what_if_.source());
        const std::string name = displayed_model_name(context.session.model_names, document.reader()->model());
        ImGui::BeginDisabled(status.busy());
        if (command_button("Repeat the prefill"))
            context.engine->repeat_prefill(document.id(), what_if_.source().prompt, {});
        ImGui::EndDisabled();
        item_tooltip(fmt::format("Reads the prompt's {} tokens again with {}. Every parameter can then be changed.",
                                 analysis::format_count(what_if_.n_tokens()), name));
        ImGui::SameLine();
        if (ImGui::Button("with…")) {
            context.host.files.ask(
                {.kind = FileDialog::Kind::open_folder_or_file,
                 .title = "Choose " + name + ": a GGUF file or a folder with config.json",
                 .extensions = {".gguf"},
                 .answer = [engine = context.engine, id = document.id(), prompt = what_if_.source().prompt](
                               const auto& path) { engine->repeat_prefill(id, prompt, path); },
                 .asker = lifetime_.watch()});
        }
        item_tooltip("choose where " + name + " is");
        if (status.busy()) {
            ImGui::SameLine();
            ImGui::TextDisabled("%s", status.phase.empty() ? "waiting" : status.phase.c_str());
        }
    }

    struct SummaryLine {
        std::string name, tip, recorded, now, change;
    };

    std::vector<SummaryLine> summary_lines(const KeptSummary& before, const std::optional<KeptSummary>& after) const {
        std::vector<SummaryLine> lines;
        const auto now = what_if_.summary_now();
        const auto add = [&](const char* name, const char* tip, const auto& text, const auto& change) {
            lines.push_back({name, tip, text(before), now ? text(*now) : "–", after ? change(before, *after) : ""});
        };
        add(
            "entries", "kept in the cache, over all layers and KV heads",
            [](const KeptSummary& of) { return analysis::format_count(of.n_entries); },
            [](const KeptSummary& x, const KeptSummary& y) {
                return sign_of(static_cast<double>(y.n_entries - x.n_entries)) +
                       analysis::format_count(std::abs(y.n_entries - x.n_entries));
            });
        add(
            "coverage", measure_definition("coverage"),
            [](const KeptSummary& of) { return fmt::format("{:.1f} %", 100 * of.coverage); },
            [](const KeptSummary& x, const KeptSummary& y) { return points_text(x.coverage, y.coverage); });
        if (!std::isnan(before.attention_kept)) {
            add(
                "attention", measure_definition("attention_kept"),
                [](const KeptSummary& of) { return fmt::format("{:.1f} %", 100 * of.attention_kept); },
                [](const KeptSummary& x, const KeptSummary& y) {
                    return points_text(x.attention_kept, y.attention_kept);
                });
        }
        add(
            "cache", "bytes of the kept keys and values",
            [](const KeptSummary& of) { return analysis::format_bytes(static_cast<double>(of.bytes)); },
            [](const KeptSummary& x, const KeptSummary& y) {
                const double more = static_cast<double>(y.bytes) - static_cast<double>(x.bytes);
                return sign_of(more) + analysis::format_bytes(std::abs(more));
            });
        return lines;
    }

    static float summary_width(const Context& context, const std::vector<SummaryLine>& lines, float padding) {
        float columns[4] = {};
        const auto widen = [](float& column, const std::string& text) {
            column = std::max(column, ImGui::CalcTextSize(text.c_str()).x);
        };
        for (const SummaryLine& line : lines) widen(columns[0], line.name);
        widen(columns[1], "recorded");
        widen(columns[2], "now");
        widen(columns[3], "change");
        ImGui::PushFont(context.fonts.mono, 0);
        for (const SummaryLine& line : lines) {
            widen(columns[1], line.recorded);
            widen(columns[2], line.now);
            widen(columns[3], line.change);
        }
        ImGui::PopFont();
        return columns[0] + columns[1] + columns[2] + columns[3] + 2 * 4 * padding;
    }

    void draw_summary(const Context& context) const {
        const auto& before = what_if_.recorded_summary();
        if (!before) return;
        const auto after = what_if_.changed_summary();
        const std::vector<SummaryLine> lines = summary_lines(*before, after);
        const float padding = ImGui::GetFontSize() / 4;
        // In a narrow view, only tooltips show the recorded values, which the other two columns imply.
        const bool is_wide = ImGui::GetContentRegionAvail().x > summary_width(context, lines, padding);
        ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, {padding, 1});
        if (!ImGui::BeginTable("summary", is_wide ? 4 : 3, ImGuiTableFlags_SizingFixedFit)) {
            ImGui::PopStyleVar();
            return;
        }
        ImGui::TableNextColumn();
        for (const char* head : {"recorded", "now", "change"}) {
            if (head == std::string_view("recorded") && !is_wide) continue;
            ImGui::TableNextColumn();
            ImGui::TextDisabled("%s", head);
            if (head == std::string_view("now") && after && what_if_.milliseconds() > 0)
                ImGui::SetItemTooltip("selected in %.1f ms", what_if_.milliseconds());
        }
        for (const SummaryLine& line : lines) {
            ImGui::TableNextColumn();
            ImGui::TextUnformatted(line.name.c_str());
            ImGui::SetItemTooltip("%s\nrecorded: %s", line.tip.c_str(), line.recorded.c_str());
            ImGui::PushFont(context.fonts.mono, 0);
            for (const std::string* text : {&line.recorded, &line.now, &line.change}) {
                if (text == &line.recorded && !is_wide) continue;
                ImGui::TableNextColumn();
                ImGui::TextUnformatted(text->c_str());
            }
            ImGui::PopFont();
        }
        ImGui::EndTable();
        ImGui::PopStyleVar();
    }

    bool flowing_button(const char* label, const char* tip, bool is_first = false) {
        if (!is_first) {
            ImGui::SameLine();
            const float width = button_width(label);
            if (ImGui::GetContentRegionAvail().x < width) ImGui::NewLine();
        }
        const bool is_pressed = command_button(label);
        item_tooltip(tip);
        return is_pressed;
    }

    void draw_buttons(Context& context) {
        Session& session = context.session;
        const RunKey result = what_if_.shown(session);
        const bool is_kept = what_if_.kept(session).valid();
        // After an error, the shown values belong to the last valid settings.
        const bool is_stale = !what_if_.error().empty();
        ImGui::BeginDisabled(!result.valid() || is_stale || is_kept);
        if (flowing_button("Keep",
                           "keeps this what-if among the runs, also when the trace is opened again;\nthe next change "
                           "starts another what-if",
                           true))
            what_if_.keep(session);
        ImGui::EndDisabled();
        ImGui::BeginDisabled(!result.valid() || is_stale);
        if (flowing_button("Reset", is_kept ? "returns to the recorded settings; keeps this what-if and removes the "
                                              "run's other what-if that was not kept"
                                            : "returns to the recorded settings and removes this what-if"))
            what_if_.discard(session);
        ImGui::EndDisabled();
        const RunKey selected = session.displayed_run();
        const Document& document = *session.document(what_if_.source());
        const bool is_kept_one =
            selected.document == document.id() && document.is_what_if(selected.run) && (is_kept || selected != result);
        draw_decode_button(context, is_kept_one ? selected : is_stale ? RunKey{} : result);
        ImGui::BeginDisabled(!result.valid() || is_stale);
        if (flowing_button("Show both runs",
                           "hides all runs except the recorded run and this what-if; key 0 shows all runs"))
            show_alone(session, result);
        if (flowing_button("Copy command", "copies the command that makes these kept sets from the trace's tokens"))
            copy_run_command(context.session, result, context.host.notice);
        ImGui::EndDisabled();
        if (!is_kept_one) return;
        if (flowing_button("Discard this what-if", "removes the selected kept what-if from the runs")) {
            session.remove_added_run(selected);
            session.selection.select_run(what_if_.source());
        }
    }

    void draw_decode_button(Context& context, const RunKey& what_if) {
        if (!context.engine) return;
        const bool is_there = context.session.exists(what_if);
        const bool has_answer = is_there && !context.session.attributes(what_if).output_text.empty();
        ImGui::BeginDisabled(!is_there || has_answer || context.engine->status().busy());
        if (flowing_button("Decode",
                           "runs this what-if on the trace's tokens:\nits answer, the KL per step to the full cache, "
                           "and the contents of its cache"))
            context.engine->decode({what_if});
        ImGui::EndDisabled();
    }

    void show_alone(Session& session, const RunKey& result) const {
        for (const RunKey& key : session.all_runs())
            session.set_visible(key, key == result || key == what_if_.source());
        session.pair.a = what_if_.source();
        session.pair.b = result;
    }

    LiveWhatIf what_if_;
    CurvePlot curves_;
};

}  // namespace

ViewKind what_if_view() {
    return {"what_if",  "What-if",   "Repeats a selection with other budgets and parameters while a slider moves",
            Dock::left, Topic::runs, make_view<WhatIfView>,
            R"(
------***-------
......***.......
................
9999999997000000
8888886000000000
9999999999970000
7777000000000000
................)"};
}

}  // namespace kvscope::gui
