#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/gui/figure_menu.h"
#include "app/gui/figure_plot.h"
#include "app/gui/prompt_text.h"
#include "app/gui/view.h"

namespace kvscope::gui {
namespace {

/// Which layer and query head the view is about, selected or the first.
struct Place {
    int layer = 0;
    int head = 0;
};

/// The window's queries against each other: the selected head's matrix, all heads of its layer, and each layer's mean.
class QuerySimilarityView : public View {
 public:
    void draw(Context& context) override {
        Session& session = context.session;
        const auto request = figure(session);
        if (!request) {
            draw_nothing(context, "Open a trace or run the demo to see how alike the last queries are.");
            return;
        }
        const Place place{request->options.layers.front(), request->options.heads.front()};
        FigureRequest heads = *request;
        heads.options.heads.clear();
        for (int head = 0; head < n_heads_of(session, *request); ++head) heads.options.heads.push_back(head);
        FigureRequest curve = shown_request(session, "query-similarity", false);
        curve.options.source = "mean-by-layer";

        const auto slot = [&](const char* part) {
            return fmt::format("similarity {} {}", part, static_cast<void*>(this));
        };
        const auto large_answer = ask_figure(session, slot("large"), *request);
        const auto heads_answer = ask_figure(session, slot("heads"), heads);
        const auto curve_answer = ask_figure(session, slot("curve"), curve);
        const auto large = figure_or_reason(context, large_answer, "reading the queries …");
        if (!large) return;
        const auto drawn = [](const Answer<MadeFigure>& answer) {
            return answer.value ? answer.value->figure : nullptr;
        };

        const ImVec2 room = ImGui::GetContentRegionAvail();
        const float em = ImGui::GetFontSize();
        const bool stacked = room.y > 1.2f * room.x;
        const float gap = 1.5f * em;
        const float side = std::min(room.y, 0.42f * room.x) + 2 * em;
        const float rest = room.x - side - gap;
        draw_large(context, *request, place, large, stacked ? ImVec2{0, 0.45f * room.y} : ImVec2{side, room.y});
        if (const auto all = drawn(heads_answer)) {
            if (!stacked) ImGui::SameLine(0, gap);
            draw_heads(context, place, all, stacked ? ImVec2{0, 0.25f * room.y} : ImVec2{0.45f * rest, room.y});
        }
        if (const auto means = drawn(curve_answer)) {
            if (!stacked) ImGui::SameLine(0, gap);
            draw_curve(context, curve, means, stacked ? ImVec2{0, 0} : ImVec2{0, room.y});
        }
        draw_figure_menu(context, *this, "query_similarity", request);
    }

    std::optional<FigureRequest> figure(const Session& session) const override {
        FigureRequest request = shown_request(session, "query-similarity", false);
        const int n_layers = n_layers_of(session, request);
        const int n_heads = n_heads_of(session, request);
        if (request.document < 0 || n_layers == 0 || n_heads == 0) return std::nullopt;
        const Cursor& cursor = session.cursor();
        const auto& model = session.document(request.document)->reader()->model();
        const auto group = static_cast<int>(model.n_heads / model.n_kv_heads);
        const int head = cursor.query_head >= 0 ? cursor.query_head : std::max(cursor.kv_head, 0) * group;
        request.options.layers = {std::clamp(cursor.layer, 0, n_layers - 1)};
        request.options.heads = {std::clamp(head, 0, n_heads - 1)};
        return request;
    }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"move the mouse", "the cosine of two queries; their tokens light up everywhere"},
                {"click a small map", "select that query head"},
                {"click the curve", "select that layer"},
                {"[ ]", "layer before, after"},
                {"F", "everything"}};
    }

    void fit() override {
        large_.fit();
        curve_.fit();
    }

 private:
    void draw_large(Context& context, const FigureRequest& request, const Place& place,
                    const std::shared_ptr<const PreparedFigure>& figure, ImVec2 size) {
        Session& session = context.session;
        const auto first = static_cast<int64_t>(std::lround(figure->figure.panels.front().x.min + 0.5));
        FigureLook look;
        look.overlay = [&](size_t, const PlotFrame& frame, ImDrawList* list) {
            const auto mark = [&](const Cursor& cursor, ImU32 color) {
                if (cursor.run.document != request.document || !cursor.has_tokens() || cursor.first_token < first)
                    return;
                draw_column_mark(frame, list, static_cast<double>(cursor.first_token), color);
            };
            mark(session.cursor(), packed(context.theme.accent));
            mark(session.hover(), packed(context.theme.hover, 0.4f));
        };
        const FigureHit hit = large_.draw(context, "query similarity", size, figure, look);
        if (hit.row < 0) return;
        const int64_t a = first + hit.column;
        const int64_t b = first + hit.row;
        Cursor over;
        over.run = {request.document, request.options.prompt, -1};
        over.layer = place.layer;
        over.first_token = over.last_token = a;
        session.set_hover(over);
        const auto prompt = prompt_text(session, *session.document(request.document));
        const auto token = [&](int64_t t) {
            const auto i = static_cast<size_t>(t);
            return prompt && i < prompt->shown.size() ? prompt->shown[i] : std::string("…");
        };
        ImGui::BeginTooltip();
        ImGui::Text("cosine %.3f", static_cast<double>(hit.value));
        ImGui::PushFont(context.fonts.mono, 0);
        ImGui::Text("%s · %s", token(a).c_str(), token(b).c_str());
        ImGui::PopFont();
        ImGui::TextDisabled("queries of tokens %lld and %lld, layer %d, query head %d, after RoPE",
                            static_cast<long long>(a), static_cast<long long>(b), place.layer, place.head);
        ImGui::TextDisabled("ApertureKV, Figure 4");
        ImGui::EndTooltip();
        if (hit.clicked) session.select_token(a);
    }

    void draw_heads(Context& context, const Place& place, const std::shared_ptr<const PreparedFigure>& figure,
                    ImVec2 size) {
        FigureLook look;
        look.small = true;
        look.color_bars = false;
        look.framed = place.head;
        const FigureHit hit = heads_.draw(context, "heads of the layer", size, figure, look);
        if (hit.panel < 0) return;
        ImGui::SetTooltip("layer %d, query head %d", place.layer, hit.panel);
        if (!hit.clicked) return;
        Session& session = context.session;
        const auto& model = session.focus()->reader()->model();
        session.select_head(place.layer, hit.panel / static_cast<int>(model.n_heads / model.n_kv_heads), hit.panel);
    }

    void draw_curve(Context& context, const FigureRequest& request, const std::shared_ptr<const PreparedFigure>& figure,
                    ImVec2 size) {
        Session& session = context.session;
        FigureLook look;
        look.overlay = [&](size_t, const PlotFrame& frame, ImDrawList* list) {
            if (session.cursor().layer >= 0)
                draw_column_mark(frame, list, session.cursor().layer, packed(context.theme.accent, 0.7f));
            if (session.hover().layer >= 0)
                draw_column_mark(frame, list, session.hover().layer, packed(context.theme.hover, 0.3f));
        };
        const FigureHit hit = curve_.draw(context, "mean by layer", size, figure, look);
        if (hit.panel < 0) return;
        const auto* line = std::get_if<analysis::Line>(&figure->figure.panels.front().layers.front());
        const auto layer = static_cast<int>(std::lround(hit.x));
        if (!line || layer < 0 || layer >= static_cast<int>(line->y.size())) return;
        const auto at = static_cast<size_t>(layer);
        Cursor over;
        over.run = {request.document, request.options.prompt, -1};
        over.layer = layer;
        session.set_hover(over);
        ImGui::BeginTooltip();
        ImGui::Text("layer %d: mean cosine %.3f", layer, line->y[at]);
        ImGui::Text("heads from %.3f to %.3f", line->low[at], line->high[at]);
        ImGui::TextDisabled("over pairs of different queries; ApertureKV, Figure 6");
        ImGui::EndTooltip();
        if (hit.clicked) session.select_layer(layer);
    }

    FigurePlot large_, heads_, curve_;
};

}  // namespace

ViewKind query_similarity_view() {
    return {"query_similarity", "Query similarity",
            "Cosine similarity of the last queries: a map per layer and head, and each layer's mean", Dock::bottom,
            []() -> std::unique_ptr<View> { return std::make_unique<QuerySimilarityView>(); }};
}

}  // namespace kvscope::gui
