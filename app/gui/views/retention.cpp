#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <limits>

#include "analysis/measures/kept_sets.h"
#include "analysis/tables/number_text.h"
#include "analysis/tables/table_format.h"
#include "analysis/token_report.h"
#include "app/gui/figure/token_maps_view.h"
#include "app/gui/tokens/token_retention_counts.h"
#include "app/gui/tokens/token_tooltip.h"
#include "app/gui/view/action_registry.h"
#include "app/gui/view_data/cell_text.h"
#include "app/gui/view_data/measure_definitions.h"
#include "common/json.h"

namespace kvscope::gui {
namespace {

/// Returns the map of one layer, (heads, N): 1 for a kept token, 1/n for a token in an entry of n tokens, otherwise
/// NaN.
RunTokenMap heads_map(const RunAt& run, size_t layer) {
    const auto kept = run.kept();
    const auto n = static_cast<size_t>(run.reader->prompt(run.prompt).visible_tokens());
    std::vector<float> values(kept->n_rows * n, std::numeric_limits<float>::quiet_NaN());
    const analysis::KeptSets sets = analysis::kept_sets(*kept, n);
    for (size_t row = 0; row < kept->n_rows; ++row)
        sets.each(layer, row,
                  [&](uint32_t token, double share) { values[row * n + token] = static_cast<float>(share); });
    analysis::ColorScale scale;
    scale.title = "Share of an entry (1/n if n tokens share one)";
    scale.map_begin = 0.3;
    scale.background_label = "none";
    return {std::make_shared<const Pyramid>(make_pyramid(std::move(values), kept->n_rows, n, Reduce::maximum)), scale,
            "", ""};
}

std::string share_text(Session& session, const RunKey& key) {
    const trace::RunAttributes& run = session.attributes(key);
    if (run.budget_of != trace::schema::run::budget_of_bytes)
        return analysis::format_share(std::min(run.budget_fraction, 1.0)) + " of the entries";
    const double share = share_of_full_bytes(session, key);
    return std::isnan(share) ? "every token"
                             : fmt::format("every token, in {} of the bytes", analysis::format_share(share));
}

int n_layers_of(const Session& session, const RunKey& run) { return n_layers_of_document(session, run.document); }

class RetentionView : public TokenMapsView {
 public:
    RetentionView() : TokenMapsView("retention") {}

    void draw(Context& context) override {
        int most_layers = 0;
        for (const RunKey& run : shown_runs(context.session))
            most_layers = std::max(most_layers, n_layers_of(context.session, run));
        if (most_layers > 0) layer_ = std::min(layer_, most_layers - 1);
        if (layer_ >= 0 && ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows) &&
            ImGui::IsKeyPressed(ImGuiKey_Backspace) && context.actions.takes_single_keys())
            layer_ = -1;
        TokenMapsView::draw(context);
    }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"move the mouse", "show a cell's details and highlight its token in all views"},
                {"click, Shift-click", "select a token and layer; extend the tokens"},
                {"double-click", "show that layer's heads"},
                {"Backspace", "return to all layers"},
                {"right-click", "copy, export, open another view"},
                {"drag, wheel, Ctrl-drag", "pan, zoom, zoom into a box"},
                {"F", "the whole prompt"}};
    }

    void save(nlohmann::json& state) const override { state["layer"] = layer_; }
    void load(const nlohmann::json& state) override { layer_ = state.value("layer", -1); }

 private:
    std::vector<RunKey> shown_runs(const Session& session) const override {
        auto runs = session.visible_runs();
        return runs.empty() ? session.visible_runs(true) : runs;
    }

    std::string why_no_runs(const Session& session) const override {
        if (session.documents().empty()) return open_trace_or_demo() + " to see which tokens survive.";
        if (session.focus() && session.focus()->reader()->n_prompts() == 0) return why_no_prompt(*session.focus());
        return "No run is visible. Select a run in Runs, or press 0 to show all.";
    }

    void draw_header(const Context&) override {
        if (layer_ < 0) return ImGui::TextUnformatted("tokens →  layers ↓");
        const int shown = layer_;
        if (ImGui::SmallButton("All layers")) layer_ = -1;
        ImGui::SameLine();
        ImGui::Text("layer %d: tokens →  heads ↓", shown);
    }

    RunTokenMap map_of(Session& session, const RunKey& run) const override {
        RunTokenMap map = layer_ < 0 ? layers_of(session, run) : heads_of(session, run);
        map.note = share_text(session, run) + (map.note.empty() ? "" : ", " + map.note);
        return map;
    }

    RunTokenMap heads_of(Session& session, const RunKey& run) const {
        RunTokenMap map;
        // Models of two traces may have different numbers of layers.
        if (layer_ >= n_layers_of(session, run)) {
            map.error = fmt::format("The run's model has {} layers, so layer {} does not exist.",
                                    n_layers_of(session, run), layer_);
            return map;
        }
        static const TaskSlot<RunTokenMap> slot;
        const auto answer =
            session.tasks.ask(slot, fmt::format("{} {}", run.text(), layer_), session.stamp(run),
                              [at = session.at(run), layer = static_cast<size_t>(layer_)](const std::stop_token& stop) {
                                  return heads_map(at.with_stop(stop), layer);
                              });
        if (answer.value) map = *answer.value;
        map.error = answer.error;
        return map;
    }

    void enter(Session&, const RunKey&, int row, int64_t) override { layer_ = row; }

    void draw_tooltip(Context& context, const RunKey& run, int row, int64_t token) const override {
        const auto counts = token_retention_counts(context.session, run).value;
        draw_token_line(context, *context.session.document(run), token);
        const auto layer = static_cast<size_t>(layer_ >= 0 ? layer_ : row);
        const std::string fate =
            counts ? analysis::describe_fate_in_layer(*counts->kept, layer, static_cast<uint32_t>(token)) : "…";
        ImGui::Text("layer %zu: %s", layer, fate.c_str());
        ImGui::TextDisabled("%s", measure_definition("retention"));
    }
};

}  // namespace

ViewKind retention_view() {
    return {"retention",  "Retention",   "Tokens that each layer or head keeps, for all runs on a common token axis",
            Dock::center, Topic::tokens, make_view<RetentionView>,
            R"(
9300100300010099
9200200410020099
9400100730010199
8300300620040099
9100210910020199
9500100840010299
8200400750030099
9300100910010199)"};
}

}  // namespace kvscope::gui
