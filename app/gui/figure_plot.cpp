#include "app/gui/figure_plot.h"

#include <fmt/format.h>
#include <imgui_internal.h>
#include <implot.h>
#include <implot_internal.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/table_format.h"
#include "app/gui/figure_axes.h"
#include "app/gui/figure_legend.h"

namespace kvscope::gui {
namespace {

using analysis::Axis;
using analysis::Panel;
using analysis::Scale;

/// "12" of "Layer 12"; a title without a number as it is.
std::string number_of_title(const std::string& title) {
    const size_t space = title.rfind(' ');
    const bool ends_in_number = space != std::string::npos && space + 1 < title.size() &&
                                title.find_first_not_of("0123456789", space + 1) == std::string::npos;
    return ends_in_number ? title.substr(space + 1) : title;
}

/// Small panels are called by their numbers alone, all of them where one has no room for more.
bool titles_fit(const analysis::Figure& figure, float width) {
    return std::all_of(figure.panels.begin(), figure.panels.end(),
                       [&](const Panel& panel) { return small_text_size(panel.title).x <= width; });
}

/// Where the panels of a figure stand.
struct Grid {
    size_t rows = 1;
    size_t columns = 1;
    std::vector<std::pair<size_t, size_t>> places;  ///< (row, column) of each panel

    int panel_at(size_t row, size_t column) const {
        for (size_t i = 0; i < places.size(); ++i) {
            if (places[i] == std::pair{row, column}) return static_cast<int>(i);
        }
        return -1;
    }
};

/// Between two panels.
float gap_of(const FigureLook& look) { return (look.small ? 0.4f : 0.8f) * ImGui::GetFontSize(); }

/// Side of a panel below which panels are scrolled to.
float least_side() { return 2 * ImGui::GetFontSize(); }

/// Small multiples stand in as many columns as make them largest and find room; others where the figure or the look
/// says.
Grid grid_of(const analysis::Figure& figure, const FigureLook& look, ImVec2 room, float title) {
    Grid grid{figure.rows, figure.columns, {}};
    const size_t n = figure.panels.size();
    if (look.columns > 0) {
        grid.columns = std::min(look.columns, std::max<size_t>(n, 1));
        grid.rows = (n + grid.columns - 1) / grid.columns;
        for (size_t i = 0; i < n; ++i) grid.places.emplace_back(i / grid.columns, i % grid.columns);
        return grid;
    }
    if (look.small && n > 0) {
        float best = 0;
        for (size_t columns = 1; columns <= n; ++columns) {
            const size_t rows = (n + columns - 1) / columns;
            const float side =
                std::min(room.x / static_cast<float>(columns), room.y / static_cast<float>(rows) - title);
            if (side <= best && columns > 1) continue;
            best = side;
            grid.rows = rows;
            grid.columns = columns;
        }
        if (best < least_side()) {
            const float gap = gap_of(look);
            const float most = (room.x - ImGui::GetStyle().ScrollbarSize + gap) / (least_side() + gap);
            grid.columns = std::clamp<size_t>(static_cast<size_t>(std::max(most, 1.0f)), 1, n);
            grid.rows = (n + grid.columns - 1) / grid.columns;
        }
        for (size_t i = 0; i < n; ++i) grid.places.emplace_back(i / grid.columns, i % grid.columns);
        return grid;
    }
    for (const Panel& panel : figure.panels) grid.places.emplace_back(panel.row, panel.column);
    return grid;
}

struct Box {
    ImVec2 min;
    ImVec2 max;
};

/// The part of the box in which a unit of x is as long as one of y, at its upper left.
Box squared(const Panel& panel, Box box) {
    const auto across = static_cast<float>(panel.x.max - panel.x.min);
    const auto down = static_cast<float>(panel.y.max - panel.y.min);
    const float unit = std::min((box.max.x - box.min.x) / across, (box.max.y - box.min.y) / down);
    return {box.min, {box.min.x + unit * across, box.min.y + unit * down}};
}

/// Such a panel needs neither ground nor grid.
bool has_map(const Panel& panel) {
    return std::any_of(panel.layers.begin(), panel.layers.end(), [](const analysis::Layer& layer) {
        return std::holds_alternative<analysis::HeatMap>(layer) || std::holds_alternative<analysis::Categories>(layer);
    });
}

/// Alike axes of a figure that shares them are panned and zoomed together, also where they stand in other columns.
size_t key_of(const analysis::Figure& figure, size_t panel, const Axis Panel::*axis, bool shared) {
    const Axis& own = figure.panels[panel].*axis;
    const auto is_alike = [&](const Panel& other) {
        const Axis& its = other.*axis;
        return its.title == own.title && its.scale == own.scale && its.min == own.min && its.max == own.max;
    };
    const auto& panels = figure.panels;
    const auto first = shared ? std::find_if(panels.begin(), panels.end(), is_alike) : panels.begin() + panel;
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
    ImPlot::SetupAxisLimitsConstraints(which, axis.min, axis.max);
}

}  // namespace

struct FigurePlot::Drawing {
    const Context& context;
    const PreparedFigure& prepared;
    const FigureLook& look;
    Grid grid;
    bool wheel_scrolls = false;  ///< which began beside the panels
    const analysis::Figure& figure() const { return prepared.figure; }
};

FigureHit FigurePlot::draw(const Context& context, const char* id, ImVec2 size,
                           const std::shared_ptr<const PreparedFigure>& figure, const FigureLook& look) {
    FigureHit hit;
    const ImVec2 room = ImGui::GetContentRegionAvail();
    if (size.x <= 0) size.x = std::max(room.x + size.x, 1.0f);
    if (size.y <= 0) size.y = std::max(room.y + size.y, 1.0f);
    ImGui::PushID(id);
    ImGui::BeginChild("figure", size, 0, ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
    const float below = legend_height(figure->figure, look.legend, look.color_bars, size.x);
    const float least = 3 * ImGui::GetFontSize();
    ImGui::BeginChild("panels", {0, std::max(size.y - below, least)});
    const float title = small_text * ImGui::GetFontSize() + 4;
    const Drawing drawing{context, *figure, look, grid_of(figure->figure, look, ImGui::GetContentRegionAvail(), title),
                          ImGui::GetCurrentContext()->WheelingWindow == ImGui::GetCurrentWindow()};
    hit = draw_panels(drawing);
    ImGui::EndChild();
    if (below > 0) draw_legend(context.theme, figure->figure, look.legend, look.color_bars, size.x);
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
    const Grid& grid = drawing.grid;
    const bool small = drawing.look.small;
    const float em = ImGui::GetFontSize();
    const float line = small_text * em;
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const float gap = gap_of(drawing.look);

    const auto carries_x = [&](size_t i) {
        const auto [row, column] = grid.places[i];
        return !small && (!figure.shared_x || grid.panel_at(row + 1, column) < 0);
    };
    const auto carries_y = [&](size_t i) { return !small && (!figure.shared_y || grid.places[i].second == 0); };
    bool has_titles = false, has_curves = false;
    for (const Panel& panel : figure.panels) {
        has_titles |= !panel.title.empty() || !panel.note.empty();
        for (const auto& layer : panel.layers) {
            has_curves |=
                std::holds_alternative<analysis::Line>(layer) || std::holds_alternative<analysis::Scatter>(layer);
        }
    }
    const float top = has_titles ? line + 4 : small ? 0 : line / 2;  // half a label stands above its tick
    std::vector<float> bottoms(grid.rows, 0);
    for (size_t i = 0; i < grid.places.size(); ++i) {
        const size_t row = grid.places[i].first;
        const bool for_all = !figure.shared_x || row + 1 == grid.rows;
        if (carries_x(i) && for_all) bottoms[row] = 2 * line + 8;
    }
    float margins =
        static_cast<float>(grid.rows) * top + static_cast<float>(grid.rows - 1) * (small ? 0.2f : 0.5f) * em;
    for (const float bottom : bottoms) margins += bottom;
    const float usual_least = has_curves && !small ? 6 * em : least_side();
    const float least = drawing.look.least_height > 0 ? drawing.look.least_height : usual_least;
    float height = std::max((room.y - margins) / static_cast<float>(grid.rows), least);

    std::vector<float> lefts(grid.columns, 0);
    for (size_t i = 0; i < grid.places.size(); ++i) {
        if (!carries_y(i)) continue;
        const Axis axis = shown_axis(figure.panels[i].y, y_key(figure, i));
        const float title = axis.title.empty() && axis.unit.empty() ? 0 : line + 4;
        float& left = lefts[grid.places[i].second];
        left = std::max(left, std::min(widest_label(y_ticks(axis, height)), 0.4f * room.x) + title + 8);
    }
    float across = room.x - static_cast<float>(grid.columns - 1) * gap - (small ? 0 : 0.5f * em);
    for (const float left : lefts) across -= left;
    double shares = 0;
    const auto share = [&](size_t column) {
        return figure.column_widths.empty() || small ? 1.0 : figure.column_widths[column];
    };
    for (size_t column = 0; column < grid.columns; ++column) shares += share(column);
    std::vector<float> xs, widths;
    float x = 0;
    for (size_t column = 0; column < grid.columns; ++column) {
        widths.push_back(std::max(across * static_cast<float>(share(column) / shares), least_side()));
        x += lefts[column];
        xs.push_back(x);
        x += widths.back() + gap;
    }
    // Square panels take no more room than their squares, so that they stand together.
    if (!figure.panels.empty() && figure.panels.front().square_cells) {
        float widest = 0, highest = 0;
        for (const Panel& panel : figure.panels) {
            const Box box = squared(panel, {{0, 0}, {widths[0], height}});
            widest = std::max(widest, box.max.x);
            highest = std::max(highest, box.max.y);
        }
        height = highest;
        x = 0;
        for (size_t column = 0; column < grid.columns; ++column) {
            x += lefts[column];
            xs[column] = x;
            widths[column] = widest;
            x += widest + gap;
        }
    }
    const ImVec2 origin = ImGui::GetCursorScreenPos();
    ImDrawList* list = ImGui::GetWindowDrawList();
    float y = 0;
    FigureHit hit;
    std::vector<float> tops;
    for (size_t row = 0; row < grid.rows; ++row) {
        y += top;
        tops.push_back(y);
        y += height + bottoms[row] + (small ? 0.2f : 0.5f) * em;
    }
    if (y - 0.5f * em > room.y + 1) scroll_panels(drawing, tops, top, height);
    for (size_t i = 0; i < figure.panels.size(); ++i) {
        const Panel& panel = figure.panels[i];
        const auto [row, column] = grid.places[i];
        Box box{{std::round(origin.x + xs[column]), std::round(origin.y + tops[row])}, {}};
        box.max = {std::round(box.min.x + widths[column]), std::round(box.min.y + height)};
        if (panel.square_cells) box = squared(panel, box);
        const bool in_view = ImGui::IsRectVisible({box.min.x, box.min.y - top}, {box.max.x, box.max.y + 2 * line + 8});
        if (!in_view) continue;
        if (has_titles) {
            const bool framed = static_cast<int>(i) == drawing.look.framed;
            const ImU32 color = packed(framed ? drawing.context.theme.accent : drawing.context.theme.ink);
            list->PushClipRect({box.min.x, box.min.y - top}, {box.max.x, box.min.y}, true);
            add_small_text(list, {box.min.x, box.min.y - top}, color,
                           titles_fit(figure, box.max.x - box.min.x) ? panel.title : number_of_title(panel.title));
            const float note = small_text_size(panel.note).x;
            if (note + small_text_size(panel.title).x + em < box.max.x - box.min.x)
                add_small_text(list, {box.max.x - note, box.min.y - top}, packed(drawing.context.theme.ink_quiet),
                               panel.note);
            list->PopClipRect();
        }
        const FigureHit here = draw_panel(drawing, i, box.min, box.max);
        if (here.panel >= 0) hit = here;
        PlotFrame frame{box.min, box.max, shown_axis(panel.x, x_key(figure, i)), shown_axis(panel.y, y_key(figure, i))};
        if (!small) draw_ticks(drawing.context.theme, frame, carries_x(i), carries_y(i), box.min.x - lefts[column]);
    }
    ImGui::SetCursorScreenPos({origin.x, origin.y});
    ImGui::Dummy({1, std::max(y - 0.5f * em, 1.0f)});
    return hit;
}

void FigurePlot::scroll_panels(const Drawing& drawing, const std::vector<float>& tops, float title, float height) {
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
    const int framed = drawing.look.framed;
    if (framed == framed_ || ImGui::IsWindowAppearing()) return;  // what appears knows not yet how far it scrolls
    framed_ = framed;
    if (framed < 0 || static_cast<size_t>(framed) >= drawing.grid.places.size()) return;
    const float begin = tops[drawing.grid.places[static_cast<size_t>(framed)].first] - title;
    const float end = begin + title + height;
    if (begin < ImGui::GetScrollY())
        ImGui::SetScrollY(begin);
    else if (end > ImGui::GetScrollY() + room)
        ImGui::SetScrollY(std::min(begin, end - room));
}

FigureHit FigurePlot::draw_panel(const Drawing& drawing, size_t index, ImVec2 min, ImVec2 max) {
    const analysis::Figure& figure = drawing.figure();
    const Panel& panel = figure.panels[index];
    const Theme& theme = drawing.context.theme;
    Axis x = shown_axis(panel.x, x_key(figure, index));
    Axis y = shown_axis(panel.y, y_key(figure, index));
    ImGui::SetCursorScreenPos(min);
    bool is_over = false;
    if (drawing.look.small) {
        ImGui::InvisibleButton(fmt::format("panel {}", index).c_str(), {max.x - min.x, max.y - min.y});
        is_over = ImGui::IsItemHovered();
        draw_data(drawing, index, {min, max, x, y}, ImGui::GetWindowDrawList());
    } else {
        constexpr ImPlotFlags flags = ImPlotFlags_NoTitle | ImPlotFlags_NoLegend | ImPlotFlags_NoMenus |
                                      ImPlotFlags_NoMouseText | ImPlotFlags_NoFrame;
        ImPlot::PushStyleVar(ImPlotStyleVar_PlotPadding, ImVec2(0, 0));
        ImPlot::PushStyleVar(ImPlotStyleVar_PlotMinSize, ImVec2(4, 4));
        ImPlot::PushStyleColor(ImPlotCol_PlotBg, packed(theme.ground, has_map(panel) ? 0.0f : 1.0f));
        if (ImPlot::BeginPlot(fmt::format("##panel {}", index).c_str(), {max.x - min.x, max.y - min.y}, flags)) {
            const bool wheels = ImGui::GetIO().MouseWheel != 0;
            setup_axis(ImAxis_X1, panel.x, x, !drawing.wheel_scrolls && !(wheels && ImGui::GetIO().KeyShift));
            setup_axis(ImAxis_Y1, panel.y, y, !drawing.wheel_scrolls && !(wheels && ImGui::GetIO().KeyAlt));
            ImPlot::SetupFinish();
            const ImPlotRect limits = ImPlot::GetPlotLimits();
            x.min = limits.X.Min;
            x.max = limits.X.Max;
            y.min = limits.Y.Min;
            y.max = limits.Y.Max;
            const bool all = ImPlot::IsPlotHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left);
            const auto remember = [&](size_t key, const Axis& axis, const Axis& shown) {
                if (all || (shown.min <= axis.min && shown.max >= axis.max))
                    zoomed_.erase(key);
                else
                    zoomed_[key] = {shown.min, shown.max, axis.min, axis.max};
            };
            remember(x_key(figure, index), panel.x, x);
            remember(y_key(figure, index), panel.y, y);
            is_over = ImPlot::IsPlotHovered();
            ImPlot::PushPlotClipRect();
            draw_data(drawing, index, {min, max, x, y}, ImPlot::GetPlotDrawList());
            ImPlot::PopPlotClipRect();
            ImPlot::EndPlot();
        }
        ImPlot::PopStyleColor();
        ImPlot::PopStyleVar(2);
    }
    ImDrawList* list = ImGui::GetWindowDrawList();
    if (static_cast<int>(index) == drawing.look.framed)
        list->AddRect({min.x - 1, min.y - 1}, {max.x + 1, max.y + 1}, packed(theme.accent), 0.0f, 2.0f);
    else if (static_cast<int>(index) == drawing.look.hovered || (drawing.look.small && is_over))
        list->AddRect({min.x - 1, min.y - 1}, {max.x + 1, max.y + 1}, packed(theme.hover, 0.6f));

    FigureHit hit;
    if (!is_over) return hit;
    const ImGuiIO& io = ImGui::GetIO();
    const PlotFrame frame{min, max, x, y};
    hit.panel = static_cast<int>(index);
    hit.x = frame.x_at(io.MousePos.x);
    hit.y = frame.y_at(io.MousePos.y);
    hit.clicked = ImGui::IsMouseReleased(ImGuiMouseButton_Left) && io.MouseDragMaxDistanceSqr[0] < 9 && !io.KeyCtrl;
    find_hit(panel, frame, io.MousePos, hit);
    return hit;
}

void FigurePlot::draw_data(const Drawing& drawing, size_t index, const PlotFrame& frame, ImDrawList* list) {
    const analysis::Figure& figure = drawing.figure();
    const Panel& panel = figure.panels[index];
    const Theme& theme = drawing.context.theme;
    list->PushClipRect(frame.min, frame.max, true);
    if (drawing.look.small && !has_map(panel)) list->AddRectFilled(frame.min, frame.max, packed(theme.ground));
    if (!drawing.look.small && !has_map(panel)) draw_grid_lines(theme, frame, list);
    for (const bool accented : {false, true}) {  // accented ones last, above the others
        for (size_t l = 0; l < panel.layers.size(); ++l) {
            const float weight = drawing.look.weight ? drawing.look.weight(index, l) : 1;
            if ((weight > 1) != accented) continue;
            const auto pyramid = drawing.prepared.pyramids.find({index, l});
            const HeatMap* map = pyramid == drawing.prepared.pyramids.end()
                                     ? nullptr
                                     : &maps_.get(fmt::format("{}.{}", index, l), pyramid->second);
            draw_shape(theme, figure, panel.layers[l], map, frame, weight, list);
        }
    }
    if (drawing.look.overlay) drawing.look.overlay(index, frame, list);
    list->PopClipRect();
}

}  // namespace kvscope::gui
