#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/tables/number_text.h"
#include "app/gui/figure/figure_choices.h"
#include "app/gui/figure/figure_legend.h"
#include "app/gui/figure/figure_menu.h"
#include "app/gui/figure/figure_plot.h"
#include "app/gui/view/side_by_side_traces.h"
#include "app/gui/view/view.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/measure_definitions.h"
#include "common/json.h"

namespace kvscope::gui {
namespace {

PreparedFigure large_matrix(const PreparedFigure& all, int layer) {
    analysis::Figure figure;
    figure.color_scales = all.figure.color_scales;
    for (const analysis::Panel& panel : all.figure.panels)
        if (panel.subject.layer == layer) figure.panels = {panel};
    auto& panel = figure.panels.at(0);
    panel.row = panel.column = 0;
    panel.x.title = panel.y.title = all.figure.panels.back().x.title;  // small panels lack some axis titles
    PreparedFigure large = prepare_figure(std::move(figure));
    large.runs = all.runs;
    large.traces = all.traces;
    return large;
}

/// Omits the sources with ordered heads, because a check box selects these sources.
analysis::FigureDefinition plain_sources() {
    analysis::FigureDefinition definition = analysis::figure_definition("jsd");
    for (auto& option : definition.options)
        std::erase_if(option.choices, [](const std::string& choice) { return choice.ends_with("-by-similarity"); });
    return definition;
}

class HeadDivergenceView : public View {
 public:
    void draw(Context& context) override {
        Session& session = context.session;
        if (!session.focus() || !session.focus()->reader()->has_model())
            return draw_nothing(context, open_trace_or_demo() + " to see how the attention of heads differs.");
        if (draw_traces_choice("head_divergence", session, traces_)) ImGui::SameLine();
        static const analysis::FigureDefinition definition = plain_sources();
        draw_source_choice("divergence", definition, source_);
        ImGui::SameLine();
        const bool can_order = traces_ != Traces::difference;
        ImGui::BeginDisabled(!can_order);
        ImGui::Checkbox("order heads by similarity##divergence", &by_similarity_);
        ImGui::EndDisabled();
        tooltip_of_disabled(can_order ? "places heads with similar distributions next to each other, in a "
                                        "separate order for each layer (average linkage)"
                                      : "A − B needs the same order of heads in both traces");

        const auto request = figure(session);
        const bool of_runs = source_ == "scores";
        const std::string no_difference = why_no_difference(session, of_runs);
        if (traces_ == Traces::difference && !no_difference.empty()) {
            draw_nothing(context, no_difference);
        } else if (!request) {
            draw_nothing(context, why_no_prompt(*session.focus()));
        } else {
            const RunKey selected = session.displayed_run();
            if (of_runs && !request->difference && session.exists(selected) && !stores_divergence(session, selected)) {
                ImGui::SameLine();
                ImGui::TextDisabled("%s has no recorded divergence of its scores",
                                    session.look(selected).label.c_str());
            }
            draw_traces(context, *request);
        }
        draw_figure_menu(context, *this, "head_divergence", request);
    }

    std::optional<FigureRequest> figure(const Session& session) const override {
        FigureRequest request = figure_request_for_shown_runs(
            session, "jsd", source_ == "scores" && traces_ == Traces::difference, traces_);
        if (request.document < 0) return std::nullopt;
        set_options(session, request.difference, request.document, request.options, request.runs);
        for (TraceRequest& other : request.others)
            set_options(session, request.difference, other.document, other.options, other.runs);
        return request;
    }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"click a small map", "select that layer"},
                {"move over the large map", "the divergence of two heads"},
                {"click the large map", "select the head"},
                {"[ ]", "previous, next layer"},
                {"drag, wheel, Ctrl-drag", "pan, zoom, zoom into a box"},
                {"double-click, F", "everything"}};
    }

    void fit() override {
        for (auto& [document, plots] : plots_) plots.large.fit();
    }
    void save(nlohmann::json& state) const override {
        save_traces_choice(state, traces_);
        state["source"] = source_;
        state["by_similarity"] = by_similarity_;
    }
    void load(const nlohmann::json& state) override {
        load_traces_choice(state, traces_);
        source_ = state.value("source", source_);
        by_similarity_ = state.value("by_similarity", by_similarity_);
    }

 private:
    struct Plots {
        FigurePlot grid, large;
    };

    static bool stores_divergence(const Session& session, const RunKey& run) {
        static const TaskSlot<bool> slot;
        const auto answer = session.tasks.ask(
            slot, run.text(), session.stamp(run), [at = session.at(run)](const std::stop_token& stop) {
                return at.reader->with_stop(stop).has(at.place(), trace::schema::run::head_jsd);
            });
        return answer.value && *answer.value;
    }

    /// Chooses the run whose scores are shown: the selected run, A or B, if it is in this trace and has scores.
    void set_options(const Session& session, bool difference, int document, analysis::FigureOptions& options,
                     std::vector<RunId>& runs) const {
        options.source = source_;
        if (difference) return;
        if (by_similarity_) options.source += "-by-similarity";
        runs.clear();
        if (source_ != "scores") return;
        for (const RunKey& run :
             {session.displayed_run(), session.pair.a.value_or(RunKey{}), session.pair.b.value_or(RunKey{})}) {
            if (run.document != document || run.prompt != options.prompt || !session.exists(run)) continue;
            if (!stores_divergence(session, run)) continue;
            runs = {run.run};
            return;
        }
    }

    void draw_traces(Context& context, const FigureRequest& request) {
        Session& session = context.session;
        const auto answer = request_figures_by_trace(session, made_, request);
        if (!answer.value) {
            answer.error.empty() ? draw_nothing(context, "reading the divergences …")
                                 : draw_error(context, answer.error);
            return;
        }
        std::erase_if(plots_, [&](const auto& each) { return !session.document(each.first); });
        const analysis::Figure bar = color_bar(*answer.value);
        const ImVec2 room = ImGui::GetContentRegionAvail();
        const float below = legend_height(bar, false, true, room.x);
        auto titles = titles_of_side_by_side_traces(session, request);
        for (size_t i = 0; i < std::min(titles.size(), answer.value->size()); ++i) {
            const auto& figure = answer.value->at(i).figure;
            if (titles.size() > 1 && figure && bar.color_scales.front().of.empty())
                titles[i].text += " · " + figure->figure.color_scales.front().of;
        }
        draw_panel_per_trace(context, "divergence", {0, room.y - below}, titles, [&](size_t i) {
            if (i >= answer.value->size()) return;
            const MadeFigure& made = answer.value->at(i);
            const bool is_asked_for =
                made.figure && (request.difference ? made.figure->sides == sides_of_difference(request)
                                                   : made.figure->is_of(request.trace(i)));
            if (made.figure && !is_asked_for)
                draw_nothing(context, "reading the divergences …");
            else if (made.figure && !made.figure->figure.panels.empty())
                draw_both(context, request.trace(i), i, made.figure);
            else
                draw_nothing(context, made.nothing);
        });
        if (below > 0) draw_legend(context, bar, false, true, room.x);
    }

    static analysis::Figure color_bar(const std::vector<MadeFigure>& made) {
        analysis::Figure bar;
        for (const MadeFigure& each : made) {
            if (!each.figure) continue;
            const auto& scales = each.figure->figure.color_scales;
            if (bar.color_scales.empty()) bar.color_scales = scales;
            if (bar.color_scales.front().of != scales.front().of) bar.color_scales.front().of.clear();
        }
        return bar;
    }

    void draw_both(Context& context, const TraceRequest& request, size_t trace,
                   const std::shared_ptr<const PreparedFigure>& all) {
        Session& session = context.session;
        Plots& plots = plots_[request.document];
        const auto n_layers = static_cast<int>(all->figure.panels.size());
        const int layer = std::clamp(session.cursor().layer, 0, n_layers - 1);
        const ImVec2 room = ImGui::GetContentRegionAvail();
        const float em = ImGui::GetFontSize();
        const bool stacked = room.y > 1.2f * room.x;
        const float side = stacked ? std::min(room.x, 0.55f * room.y) : std::min(room.y + 2 * em, 0.5f * room.x);
        const ImVec2 grid_size = stacked ? ImVec2{room.x, room.y - side - em} : ImVec2{room.x - side - em, room.y};

        FigureLook look;
        look.small = true;
        look.color_bars = false;
        look.framed = layer;
        look.hovered = session.hover().layer;
        const FigureHit hit = plots.grid.draw(context, "all layers", grid_size, all, look);
        if (hit.panel >= 0) {
            const auto& map =
                std::get<analysis::HeatMap>(all->figure.panels[static_cast<size_t>(hit.panel)].shapes.front());
            ImGui::SetTooltip("layer %d: mean over pairs of heads %s nats\n%s; %s", hit.subject.layer,
                              analysis::format_number(mean_of_pairs(map)).c_str(),
                              analysis::color_scale_title(all->figure.color_scales.front()).c_str(),
                              measure_definition("head_divergence"));
        }

        const auto answer = session.tasks.ask(large_, std::to_string(trace), fmt::format("{} {}", all->number, layer),
                                              [all, layer] { return large_matrix(*all, layer); });
        if (!stacked) ImGui::SameLine(0, em);
        if (!answer.current || !answer.value) return;
        draw_large(context, plots.large, answer.value, stacked ? ImVec2{0, 0} : ImVec2{side, room.y});
    }

    static double mean_of_pairs(const analysis::HeatMap& map) {
        double sum = 0;
        size_t n = 0;
        for (size_t i = 0; i < map.rows; ++i) {
            for (size_t j = 0; j < map.columns; ++j) {
                const auto value = static_cast<double>(map.values[i * map.columns + j]);
                if (i == j || !std::isfinite(value)) continue;
                sum += value;
                ++n;
            }
        }
        return n > 0 ? sum / static_cast<double>(n) : 0;
    }

    static void draw_large(Context& context, FigurePlot& plot, const std::shared_ptr<const PreparedFigure>& large,
                           ImVec2 size) {
        const bool query_heads = large->figure.panels.front().x.dimension == analysis::Dimension::query_head;
        FigureLook look;
        look.color_bars = false;
        const FigureHit hit = plot.draw(context, "one layer", size, large, look);
        if (hit.row < 0) return;
        const auto at_column = large->cursor_of(context.session, hit.other);
        if (!hit.over || !at_column) return;
        const char* kind = query_heads ? "query" : "KV";
        begin_tooltip_beside();
        ImGui::Text("%s nats", analysis::format_number(static_cast<double>(hit.value)).c_str());
        ImGui::Text("layer %d, %s heads %d and %d", hit.subject.layer, kind, hit.subject.head, hit.other.head);
        if (query_heads) ImGui::TextDisabled("of KV heads %d and %d", hit.over->kv_head, at_column->kv_head);
        ImGui::TextDisabled("%s", analysis::color_scale_title(large->figure.color_scales.front()).c_str());
        ImGui::TextDisabled("%s", measure_definition("head_divergence"));
        end_tooltip_beside();
    }

    std::string source_ = "attention";
    bool by_similarity_ = false;
    Traces traces_ = Traces::all;
    std::map<int, Plots> plots_;  ///< plots by document id
    TaskSlot<std::vector<MadeFigure>> made_;
    TaskSlot<PreparedFigure> large_;
};

}  // namespace

ViewKind head_divergence_view() {
    return {"head_divergence",
            "Head divergence",
            "Jensen-Shannon divergence between the heads of each layer, of their attention or of a run's scores",
            Dock::bottom,
            Topic::heads,
            make_view<HeadDivergenceView>,
            R"(
04.06...06284675
40.60...60538264
........25047386
05.03...83405627
50.30...47560395
........68263048
07.02...72839405
70.20...56473840)"};
}

}  // namespace kvscope::gui
