#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "analysis/runs/run_choice.h"
#include "app/gui/figure/figure_choices.h"
#include "app/gui/figure/figure_view.h"
#include "app/gui/session/engine_session.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/measure_definitions.h"
#include "common/json.h"
#include "trace/spectra_cache.h"

namespace kvscope::gui {
namespace {

constexpr int layers_beside = 6;  // layers shown together with the selected one, unless all are shown

class SpectrumView : public FigureView {
 public:
    SpectrumView()
        : FigureView(
              {"spectrum", open_trace_or_demo() + " to see the spectra of the projections.", "reading the spectra …",
               "Spectra are computed from the model with the button above or with kvscope run --analyze. kvscope run "
               "--alignment records the alignment; every kvscope run without --no-record records the other measures."},
              Kind::maps_of_prompts) {}

    std::optional<FigureRequest> figure(const Session& session) const override {
        auto request = FigureView::figure(session);
        if (!request) return std::nullopt;
        set_options(session, request->document, request->options);
        for (TraceRequest& other : request->others) set_options(session, other.document, other.options);
        return request;
    }

    std::vector<std::string> commands() const override { return {"Compute the spectra"}; }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"move the mouse", "an eigenvalue; its layer is highlighted in all views"},
                {"click", "select the layer"},
                {"[ ]", "previous, next layer"},
                {"drag, wheel, Ctrl-drag", "pan, zoom, zoom into a box"},
                {"double-click, F", "everything"}};
    }

    void save(nlohmann::json& state) const override {
        FigureView::save(state);
        state["source"] = source_;
        state["all_layers"] = all_layers_;
        state["of_head"] = of_head_;
    }
    void load(const nlohmann::json& state) override {
        FigureView::load(state);
        source_ = state.value("source", source_);
        all_layers_ = state.value("all_layers", all_layers_);
        of_head_ = state.value("of_head", of_head_);
    }

 private:
    void set_options(const Session& session, int document, analysis::FigureOptions& options) const {
        options.source = source_;
        const int n = n_layers_of_document(session, document);
        if (has_all_layers() || n == 0) return;
        options.layers = analysis::evenly_spaced(n, all_layers_ ? n : layers_beside);
        const int selected = session.cursor().layer;
        if (selected >= 0 && selected < n) options.layers.push_back(selected);
        std::ranges::sort(options.layers);
        if (of_head_ && has_heads()) options.heads = query_heads(session, document);
    }

    bool has_all_layers() const { return source_ == "adjacent" || source_ == "layer-similarity"; }
    bool has_heads() const { return can_inspect_as_model() || source_ == "contribution"; }
    bool can_inspect_as_model() const { return source_ == "eigenvalues" || source_ == "cumulative"; }
    bool is_maps() const { return source_ == "layer-similarity" || source_ == "head-similarity"; }

    /// Returns the selected query head, or the query heads of the selected KV head. The list is empty if the trace has
    /// no selected head.
    static std::vector<int> query_heads(const Session& session, int document) {
        const Cursor selected = session.cursor();
        const Document* of = session.document(document);
        if (!of || !of->reader()->has_model() || (selected.query_head < 0 && selected.kv_head < 0)) return {};
        const auto& model = of->reader()->model();
        const auto n_heads = static_cast<int>(model.n_heads);
        const int group = n_heads / static_cast<int>(model.n_kv_heads);
        const bool of_kv_head = selected.query_head < 0 && selected.kv_head >= 0;
        const int first = of_kv_head ? selected.kv_head * group : std::max(selected.query_head, 0);
        std::vector<int> heads;
        for (int head = first; head < first + (of_kv_head ? group : 1) && head < n_heads; ++head) heads.push_back(head);
        return heads;
    }

    static std::string heads_text(const Session& session, int document) {
        const auto heads = query_heads(session, document);
        if (heads.empty()) return "only the selected head";
        const auto& model = session.document(document)->reader()->model();
        const int kv_head = heads.front() / static_cast<int>(model.n_heads / model.n_kv_heads);
        return heads.size() == 1
                   ? fmt::format("only KV head {}, query head {}", kv_head, heads.front())
                   : fmt::format("only KV head {}, query heads {} to {}", kv_head, heads.front(), heads.back());
    }

    bool has_choices() const override { return true; }
    void draw_choices(Context& context, const FigureRequest& request) override {
        const Session& session = context.session;
        draw_source_choice("spectrum", analysis::figure_definition("spectrum"), source_);
        if (has_all_layers()) return;
        if (can_inspect_as_model()) draw_missing(context, request);
        ImGui::SameLine();
        ImGui::Checkbox("all layers##spectrum", &all_layers_);
        if (has_heads()) {
            ImGui::SameLine();
            choose_head(session, request.document);
        }
        if (is_maps()) return;
        if (all_layers_) draw_layer_colors(context, request);
        if (session.cursor().layer < 0) return;
        ImGui::SameLine();
        ImGui::TextDisabled("layer %d is highlighted", session.cursor().layer);
    }

    /// Without a selected head, the check box is disabled. Its value applies to the next selected head.
    void choose_head(const Session& session, int document) {
        const bool has_head = !query_heads(session, document).empty();
        bool is_of_head = of_head_ && has_head;
        ImGui::BeginDisabled(!has_head);
        if (ImGui::Checkbox((heads_text(session, document) + "###head spectrum").c_str(), &is_of_head))
            of_head_ = is_of_head;
        ImGui::EndDisabled();
        if (!ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip | ImGuiHoveredFlags_AllowWhenDisabled)) return;
        ImGui::SetTooltip(
            "%s",
            has_head
                ? "On: Q of the selected query head, or of the query heads that read the selected KV head, and K and V "
                  "of that KV head. Off: the layer's full matrices, and contributions averaged over its heads"
                : "Select a head in Budgets, or in Retention within a layer, to see only that head. Without a selected "
                  "head, the view shows the layer's full matrices, and contributions averaged over its heads");
    }

    void draw_missing(Context& context, const FigureRequest& request) {
        Session& session = context.session;
        const Document* missing = nullptr;
        for (size_t i = 0; i < request.n_traces() && !missing; ++i) {
            const Document* document = session.document(request.trace(i).document);
            if (!document || !document->reader()->has_model()) continue;
            static const TaskSlot<bool> slot;
            const auto known = session.tasks.ask(slot, std::to_string(document->id()), document->stamp(),
                                                 [reader = document->reader()](const std::stop_token& stop) {
                                                     return trace::has_model_spectra(reader->with_stop(stop));
                                                 });
            if (known.value && !*known.value) missing = document;
        }
        if (!missing || !context.engine) return;
        ImGui::SameLine();
        const EngineStatus status = context.engine->status();
        const std::string model = displayed_model_name(session.model_names, missing->reader()->model());
        if (status.busy()) {
            if (ImGui::Button("Cancel##spectrum")) context.engine->cancel();
            ImGui::SameLine();
            ImGui::ProgressBar(static_cast<float>(status.share), {12 * ImGui::GetFontSize(), 0},
                               status.phase.empty() ? status.what.c_str() : status.phase.c_str());
            return;
        }
        if (command_button("Compute the spectra##spectrum")) context.engine->compute_spectra(missing->id());
        item_tooltip(
            fmt::format("Computed once from the weights of {} and kept in the cache folder for "
                        "every trace of that model. The trace does not change.",
                        model));
    }

    void draw_figure(Context& context, const FigureRequest& request,
                     const std::shared_ptr<const PreparedFigure>& shown) override {
        const Session& session = context.session;
        const bool by_layer = source_ == "adjacent";
        const size_t per_trace = by_layer    ? 1
                                 : is_maps() ? shown->figure.columns / std::max<size_t>(request.n_traces(), 1)
                                             : 3;
        FigureLook look;
        look.legend = by_layer || !all_layers_;
        // Each trace has its own row unless all traces fit side by side.
        if (!request.others.empty() && !request.difference &&
            ImGui::GetContentRegionAvail().x < 16 * ImGui::GetFontSize() * static_cast<float>(shown->figure.columns))
            look.columns = per_trace;
        const Cursor selected = session.cursor();
        const Cursor hover = session.hover();
        if (!by_layer && !is_maps()) {
            look.weight = [&](size_t panel, size_t shape) {
                const int of = layer_of(*shown, panel, shape);
                if (of < 0) return 1.0f;
                if (hover.layer >= 0) return of == hover.layer ? 2.2f : 0.4f;
                if (selected.layer >= 0) return of == selected.layer ? 2.2f : 0.5f;
                return 1.0f;
            };
        }
        const FigureHit hit = plot_.draw(context, "spectra", {0, 0}, shown, look);
        if (hit.shape < 0) return;
        if (is_maps())
            draw_tooltip_of_cell(request, *shown, hit);
        else
            draw_tooltip(request, *shown, hit);
    }

    static void draw_layer_colors(const Context& context, const FigureRequest& request) {
        const int n = n_layers_of_document(context.session, request.document);
        if (n < 2) return;
        const float em = ImGui::GetFontSize();
        ImGui::SameLine(0, 1.5f * em);
        ImGui::TextDisabled("layer 0");
        ImGui::SameLine();
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const float top = at.y + ImGui::GetStyle().FramePadding.y + 0.2f * em;
        const float each = 7 * em / static_cast<float>(n);
        for (int i = 0; i < n; ++i) {
            const analysis::Rgb color = analysis::color_at(analysis::ColorMap::viridis, 0.85 * i / (n - 1));
            const float left = at.x + static_cast<float>(i) * each;
            ImGui::GetWindowDrawList()->AddRectFilled({left, top}, {left + each, top + 0.6f * em},
                                                      packed(adapt_area_color_to_theme(color, context.theme)));
        }
        ImGui::Dummy({7 * em, em});
        ImGui::SameLine();
        ImGui::TextDisabled("%d", n - 1);
    }

    static int layer_of(const PreparedFigure& shown, size_t panel, size_t shape) {
        const analysis::Panel& of = shown.figure.panels[panel];
        return analysis::subject_of_shape(of, of.shapes[shape]).layer;
    }

    void draw_tooltip_of_cell(const FigureRequest& request, const PreparedFigure& shown, const FigureHit& hit) const {
        if (hit.row < 0 || hit.column < 0 || hit.row == hit.column) return;
        begin_tooltip_beside();
        ImGui::TextUnformatted(shown.figure.panels[static_cast<size_t>(hit.panel)].title.c_str());
        if (source_ == "layer-similarity")
            ImGui::Text("layers %d and %d", hit.subject.layer, hit.other.layer);
        else
            ImGui::Text("KV heads %d and %d", hit.subject.head, hit.other.head);
        ImGui::Text("%s %.4f", request.difference ? "difference of mean cosines (A − B)" : "mean cosine",
                    static_cast<double>(hit.value));
        ImGui::TextDisabled("%s", measure_definition(source_));
        end_tooltip_beside();
    }

    void draw_tooltip_of_head(const PreparedFigure& shown, const FigureHit& hit) const {
        const analysis::Panel& panel = shown.figure.panels[static_cast<size_t>(hit.panel)];
        const auto& points = std::get<analysis::Scatter>(panel.shapes[static_cast<size_t>(hit.shape)]);
        const auto head = static_cast<size_t>(hit.point);
        begin_tooltip_beside();
        ImGui::Text("layer %d, query head %d", hit.subject.layer, hit.subject.head);
        ImGui::Text("%s %.4f", panel.x.title.c_str(), points.x[head]);
        ImGui::Text("%s %.4f", panel.y.title.c_str(), points.y[head]);
        ImGui::TextDisabled("%s", measure_definition(source_));
        end_tooltip_beside();
    }

    void draw_tooltip(const FigureRequest& request, const PreparedFigure& shown, const FigureHit& hit) const {
        const auto panel = static_cast<size_t>(hit.panel);
        if (hit.point < 0) return;
        const analysis::Shape& drawn = shown.figure.panels[panel].shapes[static_cast<size_t>(hit.shape)];
        const bool by_layer = source_ == "adjacent";
        const int layer = hit.subject.layer;
        if (layer < 0) return;
        if (std::holds_alternative<analysis::Scatter>(drawn)) return draw_tooltip_of_head(shown, hit);
        const auto* line = std::get_if<analysis::Line>(&drawn);
        if (!line) return;
        const auto at = static_cast<size_t>(hit.point);
        begin_tooltip_beside();
        const std::string& title = shown.figure.panels[panel].title;
        if (by_layer) {
            ImGui::Text("%s: %s %.4f", line->label.c_str(),
                        request.difference ? "difference of cosines (A − B)" : "cosine", line->y[at]);
            if (!title.empty()) ImGui::TextUnformatted(title.c_str());
            ImGui::TextDisabled("layer %d, mean over neighboring tokens before RoPE", layer);
            ImGui::TextDisabled("%s", measure_definition(source_));
        } else {
            ImGui::Text("%s of layer %d", title.c_str(), layer);
            const auto n = std::ranges::count_if(line->y, [](double y) { return !std::isnan(y); });
            if (request.difference && source_ == "cumulative")
                ImGui::Text("the first %.0f of %zu: A − B %+.2f points", line->x[at], line->x.size(), line->y[at]);
            else if (source_ == "cumulative")
                ImGui::Text("the first %.0f of %zu hold %.2f %%", line->x[at], line->x.size(), line->y[at]);
            else if (source_ == "contribution")
                ImGui::Text("%s %.0f of %td: %.4g", request.difference ? "A − B, mode" : "mode", line->x[at], n,
                            line->y[at]);
            else
                ImGui::Text("%s %.0f of %td: %.4g", request.difference ? "A ÷ B, eigenvalue" : "eigenvalue",
                            line->x[at], n, line->y[at]);
            ImGui::TextDisabled("%s", measure_definition(source_));
        }
        end_tooltip_beside();
    }

    std::string source_ = "eigenvalues";
    bool all_layers_ = false;
    bool of_head_ = false;
};

}  // namespace

ViewKind spectrum_view() {
    return {"spectrum",
            "Spectrum",
            "Eigenvalues of the Q, K and V projections, similarity of neighboring tokens, layers and heads, and "
            "alignment of the loss's gradient with c11, c12 and c22",
            Dock::bottom,
            Topic::heads,
            make_view<SpectrumView>,
            R"(
9...............
98..............
98*.............
987*............
9876**..........
98765.***.......
9876543..****...
98765432211..***)"};
}

}  // namespace kvscope::gui
