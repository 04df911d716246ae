#include <fmt/format.h>
#include <imgui.h>
#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <vector>

#include "analysis/tables/number_text.h"
#include "analysis/tables/table_format.h"
#include "analysis/token_report.h"
#include "app/gui/drawing/pan_limits.h"
#include "app/gui/figure/figure_choices.h"
#include "app/gui/figure/figure_menu.h"
#include "app/gui/tokens/map_key.h"
#include "app/gui/tokens/run_difference.h"
#include "app/gui/tokens/token_map.h"
#include "app/gui/tokens/token_tooltip.h"
#include "app/gui/view/action_registry.h"
#include "app/gui/view/view.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/measure_definitions.h"
#include "common/json.h"

namespace kvscope::gui {

namespace {

/// Bars next to a token map that show the overlap of two runs' kept sets in each layer. A click or a drag selects a
/// layer, the wheel zooms, and a double click resets the zoom.
class OverlapBars {
 public:
    /// @param overlap Jaccard index of each layer @param size must have the height of the token map
    void draw(Context& context, const std::vector<double>& overlap, ImVec2 size);
    void fit() { from_ = 0, to_ = 1; }

 private:
    void zoom(double at);
    void draw_axis(const Context& context, ImVec2 from, ImVec2 to) const;

    double from_ = 0;  ///< lower end of the visible range; `to_` is the upper end
    double to_ = 1;
};

constexpr float map_padding = 2;      // space above and below the map's rows
constexpr double least_span = 0.001;  // smallest visible range

void take_keys(Session& session, int n_layers) {
    const ImGuiID owner = ImGui::GetItemID();
    const auto is_pressed = [&](ImGuiKey key) {
        ImGui::SetKeyOwner(key, owner);
        return ImGui::IsKeyPressed(key, ImGuiInputFlags_Repeat, owner);
    };
    const int layer = session.cursor().layer;
    int next = layer;
    if (is_pressed(ImGuiKey_UpArrow)) next = layer - 1;
    if (is_pressed(ImGuiKey_DownArrow)) next = layer + 1;
    if (is_pressed(ImGuiKey_Home)) next = 0;
    if (is_pressed(ImGuiKey_End)) next = n_layers - 1;
    next = std::clamp(next, 0, n_layers - 1);
    if (next != layer && !ImGui::GetIO().WantTextInput) session.selection.select_layer(next);
}

void OverlapBars::draw(Context& context, const std::vector<double>& overlap, ImVec2 size) {
    if (overlap.empty()) return;
    Session& session = context.session;
    const auto n_layers = static_cast<int>(overlap.size());
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::InvisibleButton("##difference overlap", size);
    const ImVec2 from{at.x, at.y + map_padding};
    const ImVec2 to{at.x + size.x, at.y + size.y - map_padding};
    const float each = (to.y - from.y) / static_cast<float>(n_layers);
    ImDrawList* list = ImGui::GetWindowDrawList();
    list->PushClipRect(from, to, true);
    list->AddRectFilled(from, to, packed(context.theme.ground));
    const auto x_of = [&](double share) {
        return from.x + static_cast<float>((share - from_) / (to_ - from_)) * (to.x - from.x);
    };
    for (const double share : {0.25, 0.5, 0.75})
        list->AddLine({x_of(share), from.y}, {x_of(share), to.y}, packed(context.theme.ink, 0.09f));
    for (int layer = 0; layer < n_layers; ++layer) {
        const float top = from.y + each * (static_cast<float>(layer) + 0.15f);
        list->AddRectFilled({x_of(0), top},
                            {x_of(overlap[static_cast<size_t>(layer)]), top + std::max(0.7f * each, 1.0f)},
                            packed(context.theme.accent));
    }
    const auto outline = [&](int layer, ImU32 color) {
        if (layer < 0 || layer >= n_layers) return;
        const float top = from.y + each * static_cast<float>(layer);
        list->AddRect({from.x, top}, {to.x, top + each}, color);
    };
    outline(session.cursor().layer, packed(context.theme.accent));
    outline(session.hover().layer, packed(context.theme.hover, 0.35f));
    list->PopClipRect();
    draw_axis(context, from, to);

    if (ImGui::IsItemFocused()) take_keys(session, n_layers);
    const bool is_dragged = ImGui::IsItemActive();
    if (!is_dragged && !ImGui::IsItemHovered()) return;
    const ImVec2 mouse = ImGui::GetMousePos();
    const int layer = std::clamp(static_cast<int>(std::floor((mouse.y - from.y) / each)), 0, n_layers - 1);
    Cursor over = session.cursor();
    over.layer = layer;
    over.kv_head = over.query_head = -1;
    session.set_hover(over);
    if (is_dragged && session.cursor().layer != layer) session.selection.select_layer(layer);
    ImGui::SetItemKeyOwner(ImGuiKey_MouseWheelY);
    zoom(from_ + (to_ - from_) * static_cast<double>((mouse.x - from.x) / (to.x - from.x)));
    ImGui::SetTooltip("layer %d: %s same entries\n%s", layer,
                      analysis::format_share(overlap[static_cast<size_t>(layer)]).c_str(),
                      measure_definition("overlap"));
}

void OverlapBars::zoom(double at) {
    if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) return fit();
    const float wheel = ImGui::GetIO().MouseWheel;
    if (wheel == 0) return;
    const double span = to_ - from_;
    const double zoomed = std::clamp(span * std::pow(wheel_zoom, static_cast<double>(wheel)), least_span, 1.0);
    from_ = std::clamp(at - (at - from_) / span * zoomed, 0.0, 1 - zoomed);
    to_ = from_ + zoomed;
}

void OverlapBars::draw_axis(const Context& context, ImVec2 from, ImVec2 to) const {
    const float below = to.y + map_padding + ImGui::GetStyle().ItemSpacing.y + 3 * context.scale;
    const auto label = [&](const std::string& text, float place) {
        const float x = from.x + place * (to.x - from.x - ImGui::CalcTextSize(text.c_str()).x);
        ImGui::GetWindowDrawList()->AddText({x, below}, packed(context.theme.ink_quiet), text.c_str());
    };
    const int decimals = to_ - from_ > 0.1 ? 0 : 1;
    label(fmt::format("{:.{}f}", 100 * from_, from_ > 0 ? decimals : 0), 0);
    label("same entries", 0.5f);
    label(fmt::format("{:.{}f} %", 100 * to_, to_ < 1 ? decimals : 0), 1);
}

constexpr std::array<const char*, 4> class_names = {"neither", "both", "only A", "only B"};

class DifferenceView : public View {
 public:
    void draw(Context& context) override {
        Session& session = context.session;
        if (session.documents().empty())
            return draw_nothing(context, open_trace_or_demo() + ", then choose two runs to compare.");
        std::tie(a_, b_) = session.compared();
        if (fit_) session.token_axis.show_everything();
        fit_ = false;
        if (layer_ >= 0 && ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows) &&
            ImGui::IsKeyPressed(ImGuiKey_Backspace) && context.actions.takes_single_keys())
            layer_ = -1;
        draw_choice(context);
        if (!a_.valid() || !b_.valid())
            return draw_nothing(context, "A difference needs two finished runs. Choose A and B here or in Runs.");
        if (a_ == b_) return draw_nothing(context, "A and B are the same run. Choose another run for one of them.");
        draw_difference(context);
        maps_.drop_unused();
        draw_figure_menu(context, *this, "difference", figure(session));
    }

    std::optional<FigureRequest> figure(const Session& session) const override {
        if (!session.exists(a_) || !session.exists(b_) || a_.document != b_.document || a_.prompt != b_.prompt ||
            a_ == b_)
            return std::nullopt;
        FigureRequest request{a_.document, "difference", {}};
        request.options.prompt = a_.prompt;
        request.runs = {a_.run, b_.run};
        request.options.source = classes_ ? "classes" : "heads";
        if (layer_ >= 0) request.options.layers = {layer_};
        return request;
    }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {{"A, B", "the two runs; the same choice as in Runs"},
                {"move the mouse", "show which heads of A and of B keep a token"},
                {"click, Shift-click", "select a token and layer; extend the tokens"},
                {"double-click, Backspace", "show a layer's heads, return to all layers"},
                {"drag, wheel, Ctrl-drag", "pan, zoom, zoom into a box"},
                {"bars: click, drag", "select a layer"},
                {"bars: ↑ ↓ after a click", "previous, next layer"},
                {"bars: wheel, double-click", "zoom in, return to 0 to 100 %"},
                {"right-click", "copy, export, open another view"},
                {"F", "show the whole prompt and all shares"}};
    }

    void fit() override {
        fit_ = true;
        bars_.fit();
    }
    void save(nlohmann::json& state) const override { state = {{"classes", classes_}, {"layer", layer_}}; }
    void load(const nlohmann::json& state) override {
        classes_ = state.value("classes", false);
        layer_ = state.value("layer", -1);
    }

 private:
    void draw_choice(Context& context) {
        const float em = ImGui::GetFontSize();
        draw_pair_choice(context, "difference");
        std::tie(a_, b_) = context.session.compared();
        int mode = classes_ ? 1 : 0;
        same_line_if_fits(11 * em);
        ImGui::SetNextItemWidth(11 * em);
        if (ImGui::Combo("##difference shows", &mode, "heads in A − in B\0kept by both / one\0")) classes_ = mode == 1;
    }

    std::vector<ImU32> class_colors(const Theme& theme) const {
        const bool is_dark = theme.brightness == Brightness::dark;
        const auto map = adapt_color_map_to_theme(analysis::ColorMap::blue_white_red, theme);
        return {packed(theme.ground), is_dark ? IM_COL32(0x70, 0x76, 0x80, 255) : IM_COL32(0xb8, 0xb8, 0xb8, 255),
                packed(analysis::color_at(map, is_dark ? 0.85 : 0.9)),
                packed(analysis::color_at(map, is_dark ? 0.15 : 0.1))};
    }

    MapColors colors_for(const Context& context, float most) const {
        if (!classes_) return difference_colors(context.theme, most);
        MapColors colors;
        colors.ground = packed(context.theme.ground);
        colors.classes = class_colors(context.theme);
        return colors;
    }

    void draw_key(const Context& context, const MapColors& colors, int most, bool merges) const {
        const auto patch = [&](ImU32 color, const std::string& label) {
            draw_color_patch(context.theme, color, label);
        };
        if (classes_) {
            for (size_t i = 0; i < class_names.size(); ++i) patch(colors.classes[i], class_names[i]);
            return;
        }
        const auto color = [&](int difference) {
            return map_value_to_color(
                colors, scale_difference_to_color(static_cast<float>(difference), static_cast<float>(most)));
        };
        disabled_text(fmt::format("B keeps more  −{}", most));
        ImGui::SameLine(0, 0.25f * ImGui::GetFontSize());
        const int step = std::max(1, (most + 3) / 4);
        for (int i = most; i >= 1; i -= step) patch(color(-i), "");
        patch(packed(context.theme.ground), "");
        for (int i = most - (most - 1) / step * step; i <= most; i += step)
            patch(color(i), i == most ? fmt::format("+{} {}  A keeps more{}", most, most == 1 ? "head" : "heads",
                                                    merges ? "  (1/n in an entry of n)" : "")
                                      : "");
    }

    void draw_difference(Context& context) {
        Session& session = context.session;
        const std::string name = fmt::format("{} {} {} {}", a_.text(), b_.text(), layer_, classes_);
        const std::string stamp = session.stamp(a_) + " " + session.stamp(b_);
        const auto answer = session.tasks.ask(
            compared_, name, stamp,
            [a = session.at(a_), b = session.at(b_), layer = layer_, classes = classes_](const std::stop_token& stop) {
                return compare_kept_tokens(a.with_stop(stop), b.with_stop(stop), layer, classes);
            });
        if (!answer.error.empty()) return draw_nothing(context, answer.error);
        if (!answer.value) return draw_nothing(context, "comparing …");
        const RunDifference& shown = *answer.value;
        layer_ = std::min(layer_, static_cast<int>(shown.pair.n_layers) - 1);
        const int most = layer_ >= 0 ? 1 : static_cast<int>(shown.pair.n_rows);
        const MapColors colors = colors_for(context, static_cast<float>(most));

        if (layer_ >= 0) {
            if (ImGui::SmallButton("All layers##difference")) layer_ = -1;
            ImGui::SameLine();
            ImGui::Text("layer %d: tokens →  heads ↓", layer_);
        } else {
            ImGui::TextUnformatted("tokens →  layers ↓");
        }
        ImGui::SameLine(0, ImGui::GetFontSize());
        draw_key(context, colors, most, shown.pair.merges());
        if (!same_line_if_fits(10 * ImGui::GetFontSize())) ImGui::NewLine();
        draw_overlap_line(shown);

        const ImVec2 room = ImGui::GetContentRegionAvail();
        const float em = ImGui::GetFontSize();
        const bool with_bars = room.x > 55 * em && layer_ < 0;
        const float bars = with_bars ? 13 * em : 0;
        const float overview = room.y > 14 * em ? 1.4f * em : 0;
        const ImVec2 gap = ImGui::GetStyle().ItemSpacing;
        const float axis = em + 3 * context.scale;
        const float height = std::max(room.y - axis - gap.y - (overview > 0 ? overview + gap.y : 0), 2 * em);
        const std::shared_ptr<const Pyramid> pyramid(answer.value, &answer.value->map);
        TokenMap map;
        map.document = session.document(a_);
        map.map = &maps_.get(name, pyramid);
        map.colors = colors;
        map.rows_are_heads = layer_ >= 0;
        map.layer = layer_;
        map.tooltip = [&](int row, int64_t token) { draw_tooltip(context, shown, row, token); };
        const DrawnTokenMap drawn =
            draw_token_map(context, "##difference map", {with_bars ? room.x - bars - gap.x : 0, height}, map);
        if (with_bars) {
            ImGui::SameLine();
            bars_.draw(context, shown.overlap, {bars, height});
        }
        if (drawn.is_visible()) {
            draw_token_axis(context, drawn, static_cast<int64_t>(shown.pair.n_tokens));
            if (overview > 0 && layer_ < 0)
                draw_token_overview(context, "##difference overview", drawn, overview, *map.document, *map.map, colors);
        }
        if (drawn.entered >= 0) layer_ = drawn.entered;
    }

    void draw_overlap_line(const RunDifference& shown) const {
        ImGui::TextUnformatted(("same entries: " + analysis::format_share(shown.overlap_total)).c_str());
        item_tooltip(
            fmt::format("tokens that both runs hold, divided by tokens that at least one run "
                        "holds, for each layer and head; the stored form does not matter{}\n{}",
                        shown.pair.a->n_rows == shown.pair.b->n_rows
                            ? ""
                            : fmt::format("; one run has {} heads per layer and the other {}, "
                                          "so each KV head stands for its group of query heads",
                                          shown.pair.a->n_rows, shown.pair.b->n_rows),
                        measure_definition("overlap")));
    }

    void draw_tooltip(Context& context, const RunDifference& shown, int row, int64_t token) const {
        draw_token_line(context, *context.session.document(a_), token);
        const RunPair& pair = shown.pair;
        const auto position = static_cast<uint32_t>(token);
        const std::string of_a = session_label(context, a_);
        const std::string of_b = session_label(context, b_);
        if (layer_ >= 0) {
            const auto r = static_cast<size_t>(row);
            const auto layer = static_cast<size_t>(layer_);
            const double in_a = pair.entries(*pair.a, layer, r, position);
            const double in_b = pair.entries(*pair.b, layer, r, position);
            ImGui::Text("layer %d, head %d: %s", layer_, row,
                        in_a > 0 && in_b > 0 ? "kept by both"
                        : in_a > 0           ? "kept by A only"
                        : in_b > 0           ? "kept by B only"
                                             : "kept by neither");
            if (in_a > 0 && in_a < 1) ImGui::Text("A: merged into an entry of %.0f", 1 / in_a);
            if (in_b > 0 && in_b < 1) ImGui::Text("B: merged into an entry of %.0f", 1 / in_b);
            return;
        }
        const auto layer = static_cast<size_t>(row);
        const double in_a = pair.entries(*pair.a, layer, position);
        const double in_b = pair.entries(*pair.b, layer, position);
        const auto text = [&](const trace::Kept& kept, double entries) {
            return pair.merges() ? analysis::describe_fate_in_layer(kept, layer, position)
                                 : fmt::format("kept by {}", entries);
        };
        ImGui::Text("layer %d with %zu heads", row, pair.n_rows);
        ImGui::Text("A  %s: %s", of_a.c_str(), text(*pair.a, in_a).c_str());
        ImGui::Text("B  %s: %s", of_b.c_str(), text(*pair.b, in_b).c_str());
        ImGui::Text("A − B: %s", fmt::format("{:+.3g}", in_a - in_b).c_str());
        ImGui::TextDisabled("%s", measure_definition("retention"));
    }

    static std::string session_label(const Context& context, const RunKey& key) {
        return context.session.look(key).label;
    }

    RunKey a_, b_;
    bool classes_ = false;
    int layer_ = -1;
    bool fit_ = false;
    OverlapBars bars_;
    MapStore maps_;
    TaskSlot<RunDifference> compared_;
};

}  // namespace

ViewKind difference_view() {
    return {"difference", "Difference",  "Where run A keeps more entries than run B, and where it keeps fewer",
            Dock::center, Topic::tokens, make_view<DifferenceView>,
            R"(
.a...b..a.a...b.
.a......aa...bb.
aa...b..a.....b.
.a..bb....a..b..
.a...b..aa....bb
aa...b..a.a...b.
.a..b....aa..bb.
.a...b..a.....b.)"};
}

}  // namespace kvscope::gui
