#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "app/gui/figure/figure_choices.h"
#include "app/gui/figure/figure_menu.h"
#include "app/gui/figure/figure_plot.h"
#include "app/gui/view/side_by_side_traces.h"
#include "app/gui/view/view.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/measure_definitions.h"
#include "app/gui/view_data/prompt_text.h"
#include "common/json.h"

namespace kvscope::gui {
namespace {

struct Shown {
    int layer = 0;
    int head = 0;
};

class QuerySimilarityView : public View {
 public:
    void draw(Context& context) override {
        Session& session = context.session;
        if (!session.focus() || !session.focus()->reader()->has_model())
            return draw_nothing(context, open_trace_or_demo() + " to see how similar the last queries are.");
        draw_traces_choice("query_similarity", session, traces_);
        const std::string no_difference = why_no_difference(session, false);
        const auto request = figure(session);
        if (traces_ == Traces::difference && !no_difference.empty())
            draw_nothing(context, no_difference);
        else if (!request)
            draw_nothing(context, why_no_prompt(*session.focus()));
        else
            draw_all(context, *request);
        draw_figure_menu(context, *this, "query_similarity", request);
    }

    std::optional<FigureRequest> figure(const Session& session) const override {
        FigureRequest request = figure_request_for_shown_runs(session, "query-similarity", false, traces_);
        if (request.document < 0) return std::nullopt;
        const auto set = [&](int document, analysis::FigureOptions& options) {
            const auto place = place_in(session, document);
            if (!place) return false;
            options.layers = {place->layer};
            options.heads = {place->head};
            return true;
        };
        bool all = set(request.document, request.options);
        for (TraceRequest& other : request.others) all = set(other.document, other.options) && all;
        if (!all) return std::nullopt;
        return request;
    }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"move the mouse", "cosine of two queries, whose tokens are highlighted in all views"},
                {"click a small map", "select that query head"},
                {"click the curve", "select that layer"},
                {"[ ]", "previous, next layer"},
                {"drag, wheel, Ctrl-drag", "pan, zoom, zoom into a box"},
                {"double-click, F", "everything"}};
    }

    void fit() override {
        for (auto& [document, plots] : plots_) plots.large.fit();
        curve_.fit();
    }
    void save(nlohmann::json& state) const override { save_traces_choice(state, traces_); }
    void load(const nlohmann::json& state) override { load_traces_choice(state, traces_); }

 private:
    struct Plots {
        FigurePlot large, heads;
    };

    static std::optional<Shown> place_in(const Session& session, int document) {
        const int n_layers = n_layers_of_document(session, document);
        const int n_heads = n_heads_of_document(session, document);
        if (n_layers == 0 || n_heads == 0) return std::nullopt;
        const Cursor cursor = session.cursor();
        const auto& model = session.document(document)->reader()->model();
        const auto group = static_cast<int>(model.n_heads / model.n_kv_heads);
        const int head = cursor.query_head >= 0 ? cursor.query_head : std::max(cursor.kv_head, 0) * group;
        return Shown{std::clamp(cursor.layer, 0, n_layers - 1), std::clamp(head, 0, n_heads - 1)};
    }

    void draw_all(Context& context, const FigureRequest& request) {
        Session& session = context.session;
        FigureRequest heads = request;
        const auto all_heads = [&](int document, analysis::FigureOptions& options) {
            options.heads.clear();
            for (int head = 0; head < n_heads_of_document(session, document); ++head) options.heads.push_back(head);
        };
        all_heads(heads.document, heads.options);
        for (TraceRequest& other : heads.others) all_heads(other.document, other.options);
        FigureRequest curve = figure_request_for_shown_runs(session, "query-similarity", false, traces_);
        curve.options.source = "mean-by-layer";
        for (TraceRequest& other : curve.others) other.options.source = curve.options.source;

        const auto large_answer = request_figures_by_trace(session, large_, request);
        const auto heads_answer = request_figures_by_trace(session, heads_, heads);
        const auto curve_answer = request_figure(session, mean_, curve);
        if (!large_answer.value) {
            large_answer.error.empty() ? draw_nothing(context, "reading the queries …")
                                       : draw_error(context, large_answer.error);
            return;
        }
        std::erase_if(plots_, [&](const auto& each) { return !session.document(each.first); });
        const ImVec2 room = ImGui::GetContentRegionAvail();
        const bool stacked = room.y > 1.2f * room.x;
        const float gap = 1.5f * ImGui::GetFontSize();
        const auto titles = titles_of_side_by_side_traces(session, request);
        const float share = titles.size() > 1 ? 0.72f : 0.7f;
        auto means = curve_answer.value ? curve_answer.value->figure : nullptr;
        if (means && means->sides != sides_of_difference(curve)) means.reset();
        const ImVec2 maps{stacked ? 0 : means ? share * room.x : room.x, stacked && means ? share * room.y : room.y};
        draw_panel_per_trace(context, "similarity", maps, titles, [&](size_t i) {
            if (i >= large_answer.value->size()) return;
            const MadeFigure& large = large_answer.value->at(i);
            if (!large.figure) return draw_nothing(context, large.nothing);
            const TraceRequest of = request.trace(i);
            const auto is_of_it = [&](const std::shared_ptr<const PreparedFigure>& figure) {
                return figure &&
                       (request.difference ? figure->sides == sides_of_difference(request) : figure->is_of(of));
            };
            if (!is_of_it(large.figure)) return draw_nothing(context, "reading the queries …");
            const bool has_heads =
                heads_answer.value && i < heads_answer.value->size() && is_of_it(heads_answer.value->at(i).figure);
            draw_trace(context, of, large.figure, has_heads ? heads_answer.value->at(i).figure : nullptr,
                       request.difference, large_answer.current && heads_answer.current);
        });
        if (!means) return;
        if (!stacked) ImGui::SameLine(0, gap);
        draw_curve(context, curve, means, {0, stacked ? 0 : room.y});
    }

    void draw_trace(Context& context, const TraceRequest& request, const std::shared_ptr<const PreparedFigure>& large,
                    const std::shared_ptr<const PreparedFigure>& heads, bool difference, bool is_current) {
        const auto place = place_in(context.session, request.document);
        if (!place) return;
        Plots& plots = plots_[request.document];
        const ImVec2 room = ImGui::GetContentRegionAvail();
        const float em = ImGui::GetFontSize();
        const bool stacked = room.y > 1.1f * room.x;
        const float side = stacked ? std::min(0.6f * room.y, room.x) : std::min(room.y, 0.58f * room.x) + 2 * em;
        draw_large(context, request, plots.large, large, stacked ? ImVec2{0, side} : ImVec2{side, room.y}, difference,
                   is_current);
        if (!heads) return;
        if (!stacked) ImGui::SameLine(0, em);
        draw_heads(context, *place, plots.heads, heads, stacked ? ImVec2{0, 0} : ImVec2{0, room.y}, is_current);
    }

    static void draw_large(Context& context, const TraceRequest& request, FigurePlot& plot,
                           const std::shared_ptr<const PreparedFigure>& figure, ImVec2 size, bool difference,
                           bool is_current) {
        FigureLook look;
        look.selects = is_current;  // otherwise the figure belongs to the previous selection
        const FigureHit hit = plot.draw(context, "query similarity", size, figure, look);
        if (hit.row < 0 || !is_current) return;
        const int a = hit.other.token;
        const int b = hit.subject.token;
        const auto prompt = prompt_text(context.session, *context.session.document(request.document));
        const auto token = [&](int t) {
            const auto i = static_cast<size_t>(t);
            return prompt && i < prompt->shown.size() ? prompt->shown[i] : std::string("…");
        };
        begin_tooltip_beside();
        ImGui::Text(difference ? "difference of cosines (A − B) %+.3f" : "cosine %.3f", static_cast<double>(hit.value));
        ImGui::PushFont(context.fonts.mono, 0);
        ImGui::Text("%s · %s", token(a).c_str(), token(b).c_str());
        ImGui::PopFont();
        ImGui::TextDisabled("queries of tokens %d and %d, layer %d, query head %d", a, b, hit.subject.layer,
                            hit.subject.head);
        ImGui::TextDisabled("%s", measure_definition("query_similarity"));
        end_tooltip_beside();
    }

    static void draw_heads(Context& context, const Shown& place, FigurePlot& plot,
                           const std::shared_ptr<const PreparedFigure>& figure, ImVec2 size, bool is_current) {
        FigureLook look;
        look.small = true;
        look.color_bars = false;
        look.framed = place.head;
        look.selects = is_current;
        const FigureHit hit = plot.draw(context, "heads of the layer", size, figure, look);
        if (hit.panel < 0 || !is_current) return;
        ImGui::SetTooltip("layer %d, query head %d\n%s", hit.subject.layer, hit.subject.head,
                          measure_definition("query_similarity"));
    }

    void draw_curve(Context& context, const FigureRequest& request, const std::shared_ptr<const PreparedFigure>& figure,
                    ImVec2 size) {
        const FigureHit hit = curve_.draw(context, "mean by layer", size, figure);
        if (hit.panel < 0) return;
        const auto& shapes = figure->figure.panels.front().shapes;
        const auto* line = std::get_if<analysis::Line>(&shapes[static_cast<size_t>(std::max(hit.shape, 0))]);
        const int layer = hit.subject.layer;
        const auto at = static_cast<size_t>(hit.point >= 0 ? hit.point : std::max(std::lround(hit.x), 0L));
        if (!line || layer < 0 || at >= line->y.size()) return;
        begin_tooltip_beside();
        if (request.n_traces() > 1 && !request.difference) ImGui::TextUnformatted(line->label.c_str());
        ImGui::Text(
            request.difference ? "layer %d: difference of mean cosines (A − B) %+.3f" : "layer %d: mean cosine %.3f",
            layer, line->y[at]);
        if (!line->low.empty()) ImGui::Text("heads from %.3f to %.3f", line->low[at], line->high[at]);
        ImGui::TextDisabled("%s", measure_definition("mean_query_similarity"));
        end_tooltip_beside();
    }

    Traces traces_ = Traces::all;
    std::map<int, Plots> plots_;  ///< plots by document id
    FigurePlot curve_;
    TaskSlot<std::vector<MadeFigure>> large_, heads_;
    TaskSlot<MadeFigure> mean_;
};

}  // namespace

ViewKind query_similarity_view() {
    return {"query_similarity",
            "Query similarity",
            "Cosine similarity of the last queries: a map per layer and head, and the mean of each layer",
            Dock::bottom,
            Topic::heads,
            make_view<QuerySimilarityView>,
            R"(
96421111...**...
69642211..*..*..
46964221.*....*.
24696422.*.....*
12469642*.......
12246964........
11224696.###....
11122469#...####)"};
}

}  // namespace kvscope::gui
