#include "app/gui/figure/figure_plot.h"

#include <fmt/format.h>
#include <imgui_internal.h>
#include <implot.h>
#include <implot_internal.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "analysis/drawing/panel_titles.h"
#include "app/gui/drawing/pan_limits.h"
#include "app/gui/figure/figure_axes.h"
#include "app/gui/figure/figure_legend.h"
#include "app/gui/figure/panel_layout.h"
#include "app/gui/view/run_label.h"

namespace kvscope::gui {

namespace {

using analysis::Axis;
using analysis::Dimension;
using analysis::Panel;

constexpr float least_cell = 5;  // pixels; for smaller cells, the row and the column are marked instead

/// Returns the layer, head, token or step under the cursor, whichever the axis shows, or −1.
int64_t number_of(Dimension dimension, const Panel& panel, const PreparedFigure& shown, const Cursor& cursor) {
    const bool is_of_layer = panel.subject.layer < 0 || panel.subject.layer == cursor.layer;
    switch (dimension) {
        case Dimension::layer:
            return cursor.layer;
        case Dimension::kv_head:
            return is_of_layer ? cursor.kv_head : -1;
        case Dimension::query_head:
            return is_of_layer ? cursor.query_head : -1;
        case Dimension::token:
            return panel.subject.trace < shown.traces.size() &&
                           shown.traces[panel.subject.trace] == std::pair{cursor.run.document, cursor.run.prompt}
                       ? cursor.first_token
                       : -1;
        case Dimension::step:
            return cursor.step;
        case Dimension::run:
        case Dimension::none:
            return -1;
    }
    return -1;
}

std::optional<double> place_on(const Axis& axis, const Panel& panel, const PreparedFigure& shown,
                               const Cursor& cursor) {
    if (axis.dimension == Dimension::run) {
        for (size_t i = 0; i < axis.numbers.size() && cursor.run.valid(); ++i) {
            const size_t trace = axis.traces.empty() ? panel.subject.trace : axis.traces[i];
            if (shown.run_of({.trace = trace, .run = axis.numbers[i]}) == cursor.run) return static_cast<double>(i);
        }
        return std::nullopt;
    }
    const int64_t number = number_of(axis.dimension, panel, shown, cursor);
    if (number < 0) return std::nullopt;
    if (axis.numbers.empty()) return static_cast<double>(number);
    const auto found = std::ranges::find(axis.numbers, number);
    if (found == axis.numbers.end()) return std::nullopt;
    return static_cast<double>(found - axis.numbers.begin());
}

void mark(const PreparedFigure& shown, const Panel& panel, const PlotFrame& frame, const Cursor& cursor, ImU32 color,
          ImDrawList* list) {
    const auto x = place_on(panel.x, panel, shown, cursor);
    const auto y = place_on(panel.y, panel, shown, cursor);
    if (x && !has_map(panel)) return draw_column_mark(frame, list, *x, color);
    const auto box = [&](double left, double right, double top, double bottom) {
        const ImVec2 a{frame.x_of(left), frame.y_of(top)}, b{frame.x_of(right), frame.y_of(bottom)};
        list->AddRect({std::min(a.x, b.x), std::min(a.y, b.y)}, {std::max(a.x, b.x), std::max(a.y, b.y)}, color, 0.0f,
                      1.5f);
    };
    const float cell = std::min(std::abs(frame.x_of(1) - frame.x_of(0)), std::abs(frame.y_of(1) - frame.y_of(0)));
    if (x && y && panel.x.dimension != panel.y.dimension && cell >= least_cell)
        return box(*x - 0.5, *x + 0.5, *y - 0.5, *y + 0.5);
    if (x) box(*x - 0.5, *x + 0.5, panel.y.min, panel.y.max);
    if (y) box(panel.x.min, panel.x.max, *y - 0.5, *y + 0.5);
}

/// Marks the selected and the hovered item on the axes of a panel: a cell, a row or a column.
void mark_selected_and_hovered(const Context& context, const PreparedFigure& shown, const Panel& panel,
                               const PlotFrame& frame, ImDrawList* list) {
    mark(shown, panel, frame, context.session.hover(), packed(context.theme.hover, 0.5f), list);
    mark(shown, panel, frame, context.session.cursor(), packed(context.theme.accent), list);
}

using analysis::Scale;

std::vector<std::string> titles_within(const analysis::Figure& figure, float width) {
    return analysis::panel_titles(figure,
                                  [&](size_t, const std::string& text) { return measure_small_text(text).x <= width; });
}

/// Returns an axis's key. If axes are shared, equal axes have the same key, so that they pan and zoom together.
size_t key_of(const analysis::Figure& figure, size_t panel, const Axis Panel::*axis, bool shared) {
    const Axis& own = figure.panels[panel].*axis;
    const auto is_alike = [&](const Panel& other) {
        const Axis& its = other.*axis;
        return its.title == own.title && its.scale == own.scale && its.min == own.min && its.max == own.max;
    };
    const auto& panels = figure.panels;
    const auto first = shared ? std::ranges::find_if(panels, is_alike) : panels.begin() + panel;
    return static_cast<size_t>(first - panels.begin());
}

size_t x_key(const analysis::Figure& figure, size_t panel) {
    return 2 * key_of(figure, panel, &Panel::x, figure.shared_x);
}

size_t y_key(const analysis::Figure& figure, size_t panel) {
    return 2 * key_of(figure, panel, &Panel::y, figure.shared_y) + 1;
}

void setup_axis(ImAxis which, const Axis& axis, Axis& shown, bool zoom) {
    ImPlotAxisFlags flags = ImPlotAxisFlags_NoDecorations | ImPlotAxisFlags_NoMenus | ImPlotAxisFlags_NoHighlight |
                            ImPlotAxisFlags_NoSideSwitch | ImPlotAxisFlags_NoInitialFit;
    if (axis.reversed) flags |= ImPlotAxisFlags_Invert;
    if (!zoom) flags |= ImPlotAxisFlags_Lock;
    ImPlot::SetupAxis(which, nullptr, flags);
    if (axis.scale == Scale::logarithmic) ImPlot::SetupAxisScale(which, ImPlotScale_Log10);
    ImPlot::SetupAxisLinks(which, &shown.min, &shown.max);
}

void keep_axis_within_limits(ImAxis which, const Axis& axis) {
    gui::keep_axis_within_limits(which, axis.min, axis.max, axis.scale == Scale::logarithmic);
}

/// Highlights a place in all views, and selects it after a click.
void highlight_and_select(Session& session, const Cursor& over, bool clicked) {
    if (!over.run.valid() && over.layer < 0 && !over.has_tokens() && over.step < 0) return;
    session.set_hover(over);
    if (!clicked) return;
    Cursor next = over.run.valid()    ? session.selection.cursor_at(over.run)
                  : over.has_tokens() ? session.selection.cursor_in(over.run.document, over.run.prompt)
                                      : session.cursor();
    if (over.layer >= 0) next.layer = over.layer;
    if (over.kv_head >= 0) {
        next.kv_head = over.kv_head;
        next.query_head = over.query_head;
    }
    if (over.has_tokens()) next.first_token = next.last_token = over.first_token;
    if (over.step >= 0) next.step = over.step;
    session.selection.set(next);
}

}  // namespace

struct FigurePlot::Drawing {
    const Context& context;
    const PreparedFigure& prepared;
    const FigureLook& look;
    bool wheel_scrolls = false;  ///< the wheel movement began outside the panels
    const analysis::Figure& figure() const { return prepared.figure; }
};

std::function<float(size_t panel, size_t shape)> weight_of_runs(const Session& session, const PreparedFigure& shown) {
    return [&](size_t panel, size_t shape) {
        const RunKey run = shown.run_of(panel, shape);
        const RunKey hovered = session.hover().run;
        if (hovered.valid() && run.valid()) return run == hovered ? 2.0f : 0.35f;
        return run.valid() && run == session.cursor().run ? 1.8f : 1.0f;
    };
}

FigureHit FigurePlot::draw(const Context& context, const char* id, ImVec2 size,
                           const std::shared_ptr<const PreparedFigure>& figure, const FigureLook& look) {
    const ImVec2 room = ImGui::GetContentRegionAvail();
    if (size.x <= 0) size.x = std::max(room.x + size.x, 1.0f);
    if (size.y <= 0) size.y = std::max(room.y + size.y, 1.0f);
    ImGui::PushID(id);
    ImGui::BeginChild("figure", size, 0, ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
    const float below = legend_height(figure->figure, look.legend, look.color_bars, size.x);
    const float least = 3 * ImGui::GetFontSize();
    ImGui::BeginChild("panels", {0, std::max(size.y - below, least)});
    const bool wheel_scrolls = ImGui::GetCurrentContext()->WheelingWindow == ImGui::GetCurrentWindow();
    const FigureHit hit = draw_panels({context, *figure, look, wheel_scrolls});
    if (look.selects && hit.over) highlight_and_select(context.session, *hit.over, hit.clicked);
    ImGui::EndChild();
    if (below > 0) draw_legend(context, figure->figure, look.legend, look.color_bars, size.x);
    ImGui::EndChild();
    ImGui::PopID();
    maps_.drop_unused();
    return hit;
}

Axis FigurePlot::shown_axis(const Axis& axis, size_t key) const {
    const auto found = zoomed_.find(key);
    if (found == zoomed_.end() || found->second.drawn_min != axis.min || found->second.drawn_max != axis.max)
        return axis;
    Axis shown = axis;
    shown.min = found->second.min;
    shown.max = found->second.max;
    return shown;
}

FigureHit FigurePlot::draw_panels(const Drawing& drawing) {
    const analysis::Figure& figure = drawing.figure();
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const PanelLayout layout = lay_out_panels(figure, drawing.look, room, [&](size_t panel) {
        return shown_axis(figure.panels[panel].y, y_key(figure, panel));
    });
    if (layout.height > room.y + 1) scroll_panels(drawing.look.framed, layout);
    const ImVec2 origin = ImGui::GetCursorScreenPos();
    const float below = 2 * small_text * ImGui::GetFontSize() + 8;
    FigureHit hit;
    std::vector<std::string> titles;
    float width_of_titles = -1;
    for (size_t i = 0; i < figure.panels.size(); ++i) {
        const Panel& panel = figure.panels[i];
        const PanelPlace& place = layout.panels[i];
        const ImVec2 min{std::round(origin.x + place.at.x), std::round(origin.y + place.at.y)};
        ImVec2 max{std::round(min.x + place.size.x), std::round(min.y + place.size.y)};
        if (panel.square_cells) {
            const ImVec2 size = size_with_equal_scales(panel, {max.x - min.x, max.y - min.y});
            max = {min.x + size.x, min.y + size.y};
        }
        if (!ImGui::IsRectVisible({min.x, min.y - layout.title}, {max.x, max.y + below})) continue;
        if (layout.has_titles) {
            if (const float width = max.x - min.x; std::exchange(width_of_titles, width) != width)
                titles = titles_within(figure, width);
            draw_title(drawing, i, titles[i], {min.x, min.y - layout.title}, {max.x, min.y});
        }
        const FigureHit here = draw_panel(drawing, i, min, max);
        if (here.panel >= 0) hit = here;
        if (drawing.look.small) continue;
        PlotFrame frame{min, max, shown_axis(panel.x, x_key(figure, i)), shown_axis(panel.y, y_key(figure, i))};
        draw_ticks(drawing.context, frame, place.carries_x, place.carries_y, min.x - place.left);
    }
    ImGui::SetCursorScreenPos(origin);
    ImGui::Dummy({1, std::max(layout.height, 1.0f)});
    return hit;
}

void FigurePlot::draw_title(const Drawing& drawing, size_t index, const std::string& title, ImVec2 min, ImVec2 max) {
    const Panel& panel = drawing.figure().panels[index];
    const Theme& theme = drawing.context.theme;
    const float width = max.x - min.x;
    const bool framed = static_cast<int>(index) == drawing.look.framed;
    ImDrawList* list = ImGui::GetWindowDrawList();
    list->PushClipRect(min, max, true);
    draw_small_text(list, min, packed(framed ? theme.accent : theme.ink), title);
    const float note = measure_small_text(panel.note).x;
    if (drawing.look.notes && note + measure_small_text(panel.title).x + ImGui::GetFontSize() < width)
        draw_small_text(list, {max.x - note, min.y}, packed(theme.ink_quiet), panel.note);
    ImGui::PushID(static_cast<int>(index));
    draw_badges_over_text(drawing.context, title, min, small_text * ImGui::GetFontSize());
    ImGui::PopID();
    list->PopClipRect();
    draw_full_text_tooltip(min, panel.title, panel.whole_title);
}

void FigurePlot::scroll_panels(int framed, const PanelLayout& layout) {
    const float room = ImGui::GetWindowHeight();
    if (ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows) && !ImGui::GetIO().WantTextInput) {
        const ImGuiID owner = ImGui::GetID("page keys");
        const auto is_pressed = [&](ImGuiKey key) {
            ImGui::SetKeyOwner(key, owner);
            return ImGui::IsKeyPressed(key, ImGuiInputFlags_Repeat, owner);
        };
        if (is_pressed(ImGuiKey_PageDown)) ImGui::SetScrollY(ImGui::GetScrollY() + 0.9f * room);
        if (is_pressed(ImGuiKey_PageUp)) ImGui::SetScrollY(ImGui::GetScrollY() - 0.9f * room);
    }
    if (framed == framed_ || ImGui::IsWindowAppearing()) return;  // a new window does not know its scroll range yet
    framed_ = framed;
    if (framed < 0 || static_cast<size_t>(framed) >= layout.panels.size()) return;
    const PanelPlace& place = layout.panels[static_cast<size_t>(framed)];
    const float begin = place.at.y - layout.title;
    const float end = place.at.y + place.size.y;
    if (begin < ImGui::GetScrollY())
        ImGui::SetScrollY(begin);
    else if (end > ImGui::GetScrollY() + room)
        ImGui::SetScrollY(std::min(begin, end - room));
}

bool FigurePlot::draw_zoomable(const Drawing& drawing, size_t index, PlotFrame& frame) {
    const Panel& panel = drawing.figure().panels[index];
    constexpr ImPlotFlags flags = ImPlotFlags_NoTitle | ImPlotFlags_NoLegend | ImPlotFlags_NoMenus |
                                  ImPlotFlags_NoMouseText | ImPlotFlags_NoFrame;
    bool is_over = false;
    ImPlot::PushStyleVar(ImPlotStyleVar_PlotPadding, ImVec2(0, 0));
    ImPlot::PushStyleVar(ImPlotStyleVar_PlotMinSize, ImVec2(4, 4));
    ImPlot::PushStyleColor(ImPlotCol_PlotBg, packed(drawing.context.theme.ground, has_map(panel) ? 0.0f : 1.0f));
    const ImVec2 size{frame.max.x - frame.min.x, frame.max.y - frame.min.y};
    const ImPlotInputMap input = ImPlot::GetInputMap();
    if (drawing.look.scrubs) ImPlot::GetInputMap().Pan = ImPlot::GetInputMap().Select = ImGuiMouseButton_Middle;
    if (ImPlot::BeginPlot(fmt::format("##panel {}", index).c_str(), size, flags)) {
        const bool wheels = ImGui::GetIO().MouseWheel != 0;
        setup_axis(ImAxis_X1, panel.x, frame.x_axis, !drawing.wheel_scrolls && !(wheels && ImGui::GetIO().KeyShift));
        setup_axis(ImAxis_Y1, panel.y, frame.y_axis,
                   !drawing.look.scrubs && !drawing.wheel_scrolls && !(wheels && ImGui::GetIO().KeyAlt));
        ImPlot::SetupFinish();
        keep_axis_within_limits(ImAxis_X1, panel.x);
        keep_axis_within_limits(ImAxis_Y1, panel.y);
        const ImPlotRect limits = ImPlot::GetPlotLimits();
        frame.x_axis.min = limits.X.Min;
        frame.x_axis.max = limits.X.Max;
        frame.y_axis.min = limits.Y.Min;
        frame.y_axis.max = limits.Y.Max;
        is_over = ImPlot::IsPlotHovered();
        const bool all = is_over && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left);
        const auto remember = [&](size_t key, const Axis& axis, const Axis& shown) {
            if (all || (shown.min <= axis.min && shown.max >= axis.max))
                zoomed_.erase(key);
            else
                zoomed_[key] = {shown.min, shown.max, axis.min, axis.max};
        };
        remember(x_key(drawing.figure(), index), panel.x, frame.x_axis);
        remember(y_key(drawing.figure(), index), panel.y, frame.y_axis);
        ImPlot::PushPlotClipRect();
        draw_data(drawing, index, frame, ImPlot::GetPlotDrawList());
        ImPlot::PopPlotClipRect();
        ImPlot::EndPlot();
    }
    ImPlot::GetInputMap() = input;
    ImPlot::PopStyleColor();
    ImPlot::PopStyleVar(2);
    return is_over;
}

FigureHit FigurePlot::draw_panel(const Drawing& drawing, size_t index, ImVec2 min, ImVec2 max) {
    const analysis::Figure& figure = drawing.figure();
    const Panel& panel = figure.panels[index];
    const Theme& theme = drawing.context.theme;
    PlotFrame frame{min, max, shown_axis(panel.x, x_key(figure, index)), shown_axis(panel.y, y_key(figure, index))};
    ImGui::SetCursorScreenPos(min);
    bool is_over = false;
    if (drawing.look.small) {
        ImGui::InvisibleButton(fmt::format("panel {}", index).c_str(), {max.x - min.x, max.y - min.y});
        is_over = ImGui::IsItemHovered();
        draw_data(drawing, index, frame, ImGui::GetWindowDrawList());
    } else {
        is_over = draw_zoomable(drawing, index, frame);
    }
    ImDrawList* list = ImGui::GetWindowDrawList();
    if (static_cast<int>(index) == drawing.look.framed)
        list->AddRect({min.x - 1, min.y - 1}, {max.x + 1, max.y + 1}, packed(theme.accent), 0.0f, 2.0f);
    else if (static_cast<int>(index) == drawing.look.hovered || (drawing.look.small && is_over))
        list->AddRect({min.x - 1, min.y - 1}, {max.x + 1, max.y + 1}, packed(theme.hover, 0.6f));

    FigureHit hit;
    if (!is_over) return hit;
    const ImGuiIO& io = ImGui::GetIO();
    hit.panel = static_cast<int>(index);
    hit.x = frame.x_at(io.MousePos.x);
    hit.y = frame.y_at(io.MousePos.y);
    hit.clicked = ImGui::IsMouseReleased(ImGuiMouseButton_Left) && io.MouseDragMaxDistanceSqr[0] < 9 && !io.KeyCtrl;
    find_hit(panel, frame, io.MousePos, hit);
    hit.over = drawing.prepared.cursor_of(drawing.context.session, drawing.look.small ? panel.subject : hit.subject);
    return hit;
}

void FigurePlot::draw_data(const Drawing& drawing, size_t index, const PlotFrame& frame, ImDrawList* list) {
    const analysis::Figure& figure = drawing.figure();
    const Panel& panel = figure.panels[index];
    const Theme& theme = drawing.context.theme;
    list->PushClipRect(frame.min, frame.max, true);
    if (drawing.look.small && !has_map(panel)) list->AddRectFilled(frame.min, frame.max, packed(theme.ground));
    if (!drawing.look.small && !has_map(panel)) draw_grid_lines(theme, frame, list);
    const auto weight_of = [&](size_t shape) { return drawing.look.weight ? drawing.look.weight(index, shape) : 1; };
    for (size_t s = 0; s < panel.shapes.size(); ++s)
        draw_band(theme, figure, panel.shapes[s], frame, weight_of(s), list);
    for (const bool accented : {false, true}) {  // draw accented shapes last, above the others
        for (size_t s = 0; s < panel.shapes.size(); ++s) {
            const float weight = weight_of(s);
            if ((weight > 1) != accented) continue;
            const auto pyramid = drawing.prepared.pyramids.find({index, s});
            const HeatMap* map = pyramid == drawing.prepared.pyramids.end()
                                     ? nullptr
                                     : &maps_.get(fmt::format("{}.{}", index, s), pyramid->second);
            draw_shape(theme, figure, panel.shapes[s], map, frame, weight, list);
        }
    }
    if (!drawing.look.small) mark_selected_and_hovered(drawing.context, drawing.prepared, panel, frame, list);
    if (drawing.look.overlay) drawing.look.overlay(index, frame, list);
    list->PopClipRect();
}

}  // namespace kvscope::gui
