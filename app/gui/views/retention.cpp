#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/drawing/ticks.h"
#include "analysis/measures/bytes_share.h"
#include "analysis/measures/heads_keeping_token.h"
#include "analysis/tables/number_text.h"
#include "analysis/tables/table_format.h"
#include "analysis/token_report.h"
#include "app/gui/drawing/run_marks.h"
#include "app/gui/drawing/shaped_text.h"
#include "app/gui/figure/figure_menu.h"
#include "app/gui/figure/figure_shapes.h"
#include "app/gui/tokens/map_key.h"
#include "app/gui/tokens/token_map.h"
#include "app/gui/view/action_registry.h"
#include "app/gui/view/trace_badge.h"
#include "app/gui/view/view.h"
#include "app/gui/view_data/measure_definitions.h"
#include "app/gui/view_data/prompt_text.h"
#include "app/gui/view_data/share_of_bytes.h"
#include "common/json.h"

namespace kvscope::gui {
namespace {

using analysis::KeptSets;

/// A run's map and the lower end of its color scale.
struct RetentionMap {
    Pyramid pyramid;
    std::shared_ptr<const trace::Kept> kept;
    float least = 1;  ///< smallest nonzero number: at most 1, and below 1 if tokens share entries

    RetentionMap(const std::vector<double>& counts, size_t rows, size_t columns, std::shared_ptr<const trace::Kept> of)
        : pyramid(make_pyramid({counts.begin(), counts.end()}, rows, columns, Reduce::maximum)),
          kept(std::move(of)),
          least(static_cast<float>(analysis::smallest_positive_count(counts))) {}

    bool shares() const { return least < 1; }
};

/// Returns the number of heads in a layer that keep each token, (L, N). A token in an entry of n tokens counts 1/n.
RetentionMap layers_map(const trace::Reader& reader, int prompt, int run) {
    const auto kept = reader.kept(prompt, run);
    const auto n = static_cast<size_t>(reader.prompt(prompt).visible_tokens());
    return {analysis::count_heads_keeping_per_layer(analysis::kept_sets(*kept, n)), kept->n_layers, n, kept};
}

/// Returns the map of one layer, (heads, N): 1 for a kept token, 1/n for a token in an entry of n tokens.
RetentionMap heads_map(const trace::Reader& reader, int prompt, int run, size_t layer) {
    const auto kept = reader.kept(prompt, run);
    const auto n = static_cast<size_t>(reader.prompt(prompt).visible_tokens());
    const KeptSets sets = analysis::kept_sets(*kept, n);
    std::vector<double> values(kept->n_rows * n, 0.0);
    for (size_t row = 0; row < kept->n_rows; ++row)
        sets.each(layer, row, [&](uint32_t token, double share) { values[row * n + token] = share; });
    return {values, kept->n_rows, n, kept};
}

class RetentionView : public View {
 public:
    void draw(Context& context) override {
        Session& session = context.session;
        auto runs = session.visible_runs();
        if (runs.empty()) runs = session.visible_runs(true);
        if (runs.empty()) {
            draw_nothing(context, session.documents().empty() ? open_trace_or_demo() + " to see which tokens survive."
                                  : session.focus() && session.focus()->reader()->n_prompts() == 0
                                      ? why_no_prompt(*session.focus())
                                      : "No run is visible. Select a run in Runs, or press 0 to show all.");
            return;
        }
        if (layer_ >= 0 && ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows) &&
            ImGui::IsKeyPressed(ImGuiKey_Backspace) && context.actions.takes_single_keys())
            layer_ = -1;
        find_least(context, runs);
        draw_header(context, runs);

        const float em = ImGui::GetFontSize();
        const float overview = 1.4f * em;
        const float axis = em + 3 * context.scale;
        const float spacing = ImGui::GetStyle().ItemSpacing.y;
        const float room = ImGui::GetContentRegionAvail().y - axis - overview - 2 * spacing;
        const auto n_at_once = std::clamp<size_t>(static_cast<size_t>(room / (4.2f * em)), 1, runs.size());
        // Rounds to whole pixels, so that no edge of the next map is visible.
        const float each = std::floor(std::max(room / static_cast<float>(n_at_once), 4.2f * em));
        DrawnTokenMap place;
        ImGui::BeginChild("maps", {0, each * static_cast<float>(n_at_once)});
        scroll_to_selected(session.cursor().run, runs, each);
        for (const RunKey& key : runs) {
            const DrawnTokenMap drawn = draw_run(context, key, each);
            if (drawn.is_visible()) place = drawn;
            if (drawn.entered >= 0) layer_ = drawn.entered;
        }
        ImGui::EndChild();
        if (place.is_visible()) {
            const RunKey selected = session.cursor().run;
            const RunKey& key = std::find(runs.begin(), runs.end(), selected) != runs.end() ? selected : runs.front();
            draw_token_axis(context, place, session.document(key)->reader()->prompt(key.prompt).visible_tokens());
            draw_overview(context, key, place, overview);
        }
        maps_.drop_unused();
        draw_figure_menu(context, *this, "retention", figure(session));
    }

    std::optional<FigureRequest> figure(const Session& session) const override {
        const Document* focus = session.focus();
        if (!focus) return std::nullopt;
        FigureRequest request{focus->id(), "retention", {}};
        request.options.prompt = focus->prompt;
        for (const RunKey& key : session.visible_runs()) {
            if (key.document == focus->id()) request.runs.push_back(key.run);
        }
        if (layer_ >= 0) request.options.layers = {layer_};
        return request;
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

    void fit() override { fit_ = true; }
    void save(nlohmann::json& state) const override { state["layer"] = layer_; }
    void load(const nlohmann::json& state) override { layer_ = state.value("layer", -1); }

 private:
    void draw_header(Context& context, const std::vector<RunKey>& runs) {
        if (fit_) context.session.token_axis.show_everything();
        fit_ = false;
        int most_layers = 0;
        for (const RunKey& key : runs) most_layers = std::max(most_layers, n_layers_of(context.session, key));
        layer_ = std::min(layer_, most_layers - 1);
        if (layer_ >= 0) {
            const int shown = layer_;
            if (ImGui::SmallButton("All layers")) layer_ = -1;
            ImGui::SameLine();
            ImGui::Text("layer %d: tokens →  heads ↓", shown);
        } else {
            ImGui::TextUnformatted("tokens →  layers ↓");
        }
        ImGui::SameLine(0, 2 * ImGui::GetFontSize());
        draw_scale(context, runs);
    }

    /// Scrolls to the map of a run that was selected in another view. The view shows only whole maps.
    void scroll_to_selected(const RunKey& selected, const std::vector<RunKey>& runs, float each) {
        if (selected == seen_ || ImGui::IsWindowAppearing())
            return;  // its scroll range is not known in its first frame
        seen_ = selected;
        const auto at = std::find(runs.begin(), runs.end(), selected);
        if (at == runs.end()) return;
        const float top = static_cast<float>(at - runs.begin()) * each;
        const float room = ImGui::GetWindowHeight();
        if (top + each / 2 < ImGui::GetScrollY())
            ImGui::SetScrollY(top);
        else if (top + each / 2 > ImGui::GetScrollY() + room)
            ImGui::SetScrollY(top + each - room);
    }

    void find_least(Context& context, const std::vector<RunKey>& runs) {
        least_ = 1;
        all_share_ = true;
        for (const RunKey& key : runs) {
            std::string error;
            const auto map = ask_map(context, key, error);
            if (!map) continue;
            least_ = std::min(least_, map->least);
            all_share_ = all_share_ && map->shares();
        }
    }

    /// Returns the numbers below 1 that label the color bar: powers of ten, or the lower end of the scale.
    std::vector<float> parts() const {
        std::vector<float> parts;
        for (float part = 0.1f; part >= least_; part /= 10) parts.insert(parts.begin(), part);
        if (parts.empty() && least_ < 1) parts = {least_};
        return parts;
    }

    /// Draws the color bar: the background for dropped tokens, then one patch per number of heads, and one per fraction
    /// if tokens share entries. Runs with different numbers of heads have separate bars.
    void draw_scale(const Context& context, const std::vector<RunKey>& runs) const {
        draw_color_patch(context.theme, packed(context.theme.ground), "not kept");
        std::map<int, std::string> traces;  // names of the traces by number of heads
        for (const RunKey& key : runs) {
            std::string& names = traces[static_cast<int>(context.session.at(key).n_rows())];
            const std::string name = badge_in_brackets(*context.session.document(key));
            if (names.find(name) == std::string::npos) names += (names.empty() ? "of " : " ") + name;
        }
        for (const auto& [rows, names] : traces) {
            draw_scale_of_heads(context, rows);
            if (layer_ >= 0) return;
            if (traces.size() > 1) {
                ImGui::SameLine();
                ImGui::TextDisabled("%s", names.c_str());
                draw_badges_over_text(context, names, ImGui::GetItemRectMin());
            }
            if (rows != traces.rbegin()->first) ImGui::SameLine(0, 2 * ImGui::GetFontSize());
        }
    }

    void draw_scale_of_heads(const Context& context, int rows) const {
        const bool some_share = least_ < 1;
        if (!some_share || !all_share_) {
            draw_counts(context, colors_for(context, rows, false), rows);
            ImGui::TextDisabled("%s", layer_ >= 0 ? "" : "heads");
        }
        if (!some_share) return;
        if (!all_share_) ImGui::SameLine(0, 2 * ImGui::GetFontSize());
        const MapColors colors = colors_for(context, rows, true);
        for (const float part : parts())
            draw_color_patch(context.theme, map_value_to_color(colors, part), fmt::format("{:.2g}", part));
        draw_counts(context, colors, rows);
        ImGui::TextDisabled("%s(1/n in an entry of n)", layer_ >= 0 ? "" : "heads  ");
        ImGui::SetItemTooltip(
            "A token in an entry of n tokens counts 1/n, so that the counts of a map add up to the number of entries "
            "in the cache.");
    }

    void draw_counts(const Context& context, const MapColors& colors, int rows) const {
        for (const int count : analysis::choose_legend_counts(layer_ >= 0 ? 1 : rows, 8))
            draw_color_patch(context.theme, map_value_to_color(colors, static_cast<float>(count)),
                             layer_ >= 0 ? "kept" : std::to_string(count));
    }

    MapColors colors_for(const Context& context, int rows, bool shares) const {
        MapColors colors = count_colors(context.theme, 1, static_cast<float>(layer_ >= 0 ? 1 : std::max(rows, 2)));
        if (shares) {
            colors.min = 0.999f * least_;
            colors.logarithmic = true;
        } else if (layer_ >= 0) {
            colors.min = 0.5f;
            colors.map_begin = 0.75f;
            colors.map_end = 0.9f;
        }
        return colors;
    }

    static int n_layers_of(const Session& session, const RunKey& key) {
        return static_cast<int>(session.document(key)->reader()->model().n_layers);
    }

    std::string map_name(const RunKey& key) const { return fmt::format("{} {}", key.text(), layer_); }

    /// Returns nullptr while the map is being read. After an error, returns nullptr and sets `error`.
    std::shared_ptr<const RetentionMap> ask_map(Context& context, const RunKey& key, std::string& error) const {
        // Models of two traces may have different numbers of layers.
        if (layer_ >= n_layers_of(context.session, key)) {
            error = fmt::format("The run's model has {} layers, so layer {} does not exist.",
                                n_layers_of(context.session, key), layer_);
            return nullptr;
        }
        const RunAt at = context.session.at(key);
        static const TaskSlot<RetentionMap> slot;
        const int layer = layer_;
        const auto answer = context.session.tasks.ask(
            slot, map_name(key), context.session.stamp(key), [at, layer](const std::stop_token& stop) {
                const trace::Reader reader = at.reader->with_stop(stop);
                return layer < 0 ? layers_map(reader, at.prompt, at.run)
                                 : heads_map(reader, at.prompt, at.run, static_cast<size_t>(layer));
            });
        error = answer.error;
        return answer.value;
    }

    const HeatMap& drawn_map(const RunKey& key, const std::shared_ptr<const RetentionMap>& map) {
        return maps_.get(map_name(key), std::shared_ptr<const Pyramid>(map, &map->pyramid));
    }

    DrawnTokenMap draw_run(Context& context, const RunKey& key, float height) {
        DrawnTokenMap drawn;
        Session& session = context.session;
        const RunLook look = session.look(key);
        const auto& run = session.attributes(key);
        ImGui::PushID(key.text().c_str());
        draw_inline_run_marker(context.theme, look.style);
        const std::string share = share_text(session, key, run);
        const float beside = ImGui::CalcTextSize(share.c_str()).x + ImGui::GetStyle().ItemSpacing.x;
        draw_run_title(context, key, ImGui::GetContentRegionAvail().x - beside);
        ImGui::SameLine();
        ImGui::TextDisabled("%s", share.c_str());
        std::string error;
        const auto made = ask_map(context, key, error);
        const HeatMap* map = made ? &drawn_map(key, made) : nullptr;
        const float map_height = height - ImGui::GetTextLineHeightWithSpacing() - ImGui::GetStyle().ItemSpacing.y;
        if (map) {
            TokenMap shown;
            shown.document = session.document(key);
            shown.run = key;
            shown.map = map;
            shown.colors = colors_for(context, static_cast<int>(session.at(key).n_rows()), made->shares());
            shown.rows_are_heads = layer_ >= 0;
            shown.layer = layer_;
            shown.tooltip = [&](int row, int64_t token) { draw_tooltip(context, key, *made->kept, row, token); };
            drawn = draw_token_map(context, "##map", {0, map_height}, shown);
        } else {
            ImGui::BeginChild("waiting", {0, map_height});
            if (error.empty())
                draw_nothing(context, "reading kept tokens …");
            else
                draw_error(context, error);
            ImGui::EndChild();
        }
        ImGui::PopID();
        return drawn;
    }

    static std::string share_text(Session& session, const RunKey& key, const trace::RunAttributes& run) {
        if (run.budget_of != trace::schema::run::budget_of_bytes)
            return analysis::format_share(std::min(run.budget_fraction, 1.0)) + " of the entries";
        const double share = share_of_full_bytes(session, key);
        return std::isnan(share) ? "every token"
                                 : fmt::format("every token, in {} of the bytes", analysis::format_share(share));
    }

    void draw_tooltip(Context& context, const RunKey& key, const trace::Kept& kept, int row, int64_t token) const {
        const Document& document = *context.session.document(key);
        const auto prompt = prompt_text(context.session, document);
        const auto t = static_cast<size_t>(token);
        ImGui::PushFont(context.fonts.mono, 0);
        text_item(prompt && t < prompt->shown.size() ? prompt->shown[t] : "…");
        ImGui::PopFont();
        ImGui::SameLine();
        ImGui::TextDisabled("token %s", analysis::format_count(token).c_str());
        const auto layer = static_cast<size_t>(layer_ >= 0 ? layer_ : row);
        ImGui::Text("layer %zu: %s", layer,
                    analysis::describe_fate_in_layer(kept, layer, static_cast<uint32_t>(token)).c_str());
        ImGui::TextDisabled("%s", measure_definition("retention"));
    }

    void draw_overview(Context& context, const RunKey& key, const DrawnTokenMap& place, float height) {
        const int entered = layer_;
        layer_ = -1;
        std::string error;
        const auto map = ask_map(context, key, error);
        const MapColors colors =
            colors_for(context, static_cast<int>(context.session.at(key).n_rows()), map && map->shares());
        const HeatMap* drawn = map ? &drawn_map(key, map) : nullptr;
        layer_ = entered;
        if (drawn)
            draw_token_overview(context, "overview", place, height, *context.session.document(key), *drawn, colors);
    }

    int layer_ = -1;  ///< layer whose heads are shown, or −1 for all layers
    bool fit_ = false;
    float least_ = 1;         ///< smallest RetentionMap::least of the visible runs
    bool all_share_ = false;  ///< whether the tokens of all visible runs share entries
    RunKey seen_;             ///< selected run that was last scrolled to
    MapStore maps_;
};

}  // namespace

ViewKind retention_view() {
    return {"retention",  "Retention",   "Tokens that each layer or head keeps, for all runs on a common token axis",
            Dock::center, Topic::tokens, []() -> std::unique_ptr<View> { return std::make_unique<RetentionView>(); },
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
