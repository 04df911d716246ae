#include "app/gui/figure/panel_layout.h"

#include <algorithm>
#include <utility>

#include "app/gui/drawing/run_marks.h"
#include "app/gui/figure/figure_axes.h"

namespace kvscope::gui {
namespace {

using analysis::Panel;

struct Grid {
    size_t rows = 1;
    size_t columns = 1;
    std::vector<std::pair<size_t, size_t>> places;  ///< (row, column) of each panel

    const Panel* panel_at(const analysis::Figure& figure, size_t row, size_t column) const {
        const auto found = std::ranges::find(places, std::pair{row, column});
        return found == places.end() ? nullptr : &figure.panels[static_cast<size_t>(found - places.begin())];
    }
};

float gap_of(const FigureLook& look) { return (look.small ? 0.4f : 0.8f) * ImGui::GetFontSize(); }

float row_gap_of(const FigureLook& look) { return (look.small ? 0.2f : 0.5f) * ImGui::GetFontSize(); }

float least_side() { return 2 * ImGui::GetFontSize(); }

Grid row_by_row(size_t n, size_t columns) {
    Grid grid{(n + columns - 1) / columns, columns, {}};
    for (size_t i = 0; i < n; ++i) grid.places.emplace_back(i / columns, i % columns);
    return grid;
}

/// Returns the number of columns that makes square panels largest, or the number that fits at the minimum size.
size_t best_columns(size_t n, const FigureLook& look, ImVec2 room, float title) {
    size_t found = 1;
    float best = 0;
    for (size_t columns = 1; columns <= n; ++columns) {
        const size_t rows = (n + columns - 1) / columns;
        const float side = std::min(room.x / static_cast<float>(columns), room.y / static_cast<float>(rows) - title);
        if (side <= best && columns > 1) continue;
        best = side;
        found = columns;
    }
    if (best >= least_side()) return found;
    const float gap = gap_of(look);
    const float most = (room.x - ImGui::GetStyle().ScrollbarSize + gap) / (least_side() + gap);
    return std::clamp<size_t>(static_cast<size_t>(std::max(most, 1.0f)), 1, n);
}

Grid grid_of(const analysis::Figure& figure, const FigureLook& look, ImVec2 room, float title) {
    const size_t n = figure.panels.size();
    if (look.columns > 0) return row_by_row(n, std::min(look.columns, std::max<size_t>(n, 1)));
    if (look.small && n > 0) return row_by_row(n, best_columns(n, look, room, title));
    Grid grid{figure.rows, figure.columns, {}};
    for (const Panel& panel : figure.panels) grid.places.emplace_back(panel.row, panel.column);
    return grid;
}

bool has_curves(const analysis::Figure& figure) {
    const auto is_curve = [](const analysis::Shape& shape) {
        return std::holds_alternative<analysis::Line>(shape) || std::holds_alternative<analysis::Scatter>(shape);
    };
    return std::ranges::any_of(figure.panels,
                               [&](const Panel& panel) { return std::ranges::any_of(panel.shapes, is_curve); });
}

std::vector<float> column_widths(const analysis::Figure& figure, const FigureLook& look, size_t n_columns, float room) {
    const auto share = [&](size_t column) {
        return figure.column_widths.empty() || look.small ? 1.0 : figure.column_widths[column];
    };
    double shares = 0;
    for (size_t column = 0; column < n_columns; ++column) shares += share(column);
    std::vector<float> widths;
    for (size_t column = 0; column < n_columns; ++column)
        widths.push_back(std::max(room * static_cast<float>(share(column) / shares), least_side()));
    return widths;
}

/// Returns the heights of the rows of panels. If the figure sets heights (Figure::row_heights), the rows after the
/// first have their printed height, but together take at most half of `room`. Their ticks are names.
std::vector<float> row_heights(const analysis::Figure& figure, const FigureLook& look, const Grid& grid, float room,
                               float least) {
    const float equal = std::max(room / static_cast<float>(grid.rows), least);
    std::vector<float> heights(grid.rows, equal);
    if (look.small || look.columns > 0 || figure.row_heights.size() != grid.rows) return heights;
    const float pixels_per_mm = 72 / 25.4f * pixels_per_point();
    float later = 0;
    for (size_t row = 1; row < grid.rows; ++row)
        later += heights[row] = static_cast<float>(figure.row_heights[row]) * pixels_per_mm;
    const float all = equal * static_cast<float>(grid.rows);
    const float share = std::min(1.0f, all / 2 / std::max(later, 1.0f));
    for (size_t row = 1; row < grid.rows; ++row) heights[row] *= share;
    heights[0] = all - share * later;
    return heights;
}

}  // namespace

ImVec2 size_with_equal_scales(const Panel& panel, ImVec2 size) {
    const auto across = static_cast<float>(panel.x.max - panel.x.min);
    const auto down = static_cast<float>(panel.y.max - panel.y.min);
    const float unit = std::min(size.x / across, size.y / down);
    return {unit * across, unit * down};
}

namespace {

PanelLayout labels_of(const analysis::Figure& figure, const FigureLook& look, const Grid& grid) {
    PanelLayout layout;
    for (size_t i = 0; i < grid.places.size(); ++i) {
        const auto [row, column] = grid.places[i];
        PanelPlace& place = layout.panels.emplace_back();
        const Panel* below = grid.panel_at(figure, row + 1, column);
        const bool is_labelled_below = below && analysis::can_share_labels(below->x, figure.panels[i].x);
        place.carries_x = !look.small && !(figure.shared_x && is_labelled_below);
        place.carries_y = !look.small && (!figure.shared_y || column == 0);
        layout.has_titles |= !figure.panels[i].title.empty() || !figure.panels[i].note.empty();
    }
    const float line = small_text * ImGui::GetFontSize();
    layout.title = layout.has_titles ? line + 4 : look.small ? 0 : line / 2;
    return layout;
}

std::vector<float> room_below(const analysis::Figure& figure, const Grid& grid, const PanelLayout& layout) {
    std::vector<float> bottoms(grid.rows, 0);
    for (size_t i = 0; i < grid.places.size(); ++i) {
        const size_t row = grid.places[i].first;
        const bool for_all =
            !figure.shared_x || row + 1 == grid.rows || grid.panel_at(figure, row + 1, grid.places[i].second);
        if (layout.panels[i].carries_x && for_all) bottoms[row] = 2 * small_text * ImGui::GetFontSize() + 8;
    }
    return bottoms;
}

std::vector<float> room_left(const Grid& grid, const PanelLayout& layout, const std::vector<float>& heights, float most,
                             const std::function<analysis::Axis(size_t panel)>& shown_y) {
    std::vector<float> lefts(grid.columns, 0), titles(grid.columns, 0);
    for (size_t i = 0; i < grid.places.size(); ++i) {
        if (!layout.panels[i].carries_y) continue;
        const analysis::Axis axis = shown_y(i);
        const auto [row, column] = grid.places[i];
        lefts[column] = std::max(lefts[column], std::min(widest_label(y_ticks(axis, heights[row])), most) + 8);
        // The axis title of a panel of small height can extend beside the labels of the panel below.
        if (!axis.title.empty() || !axis.unit.empty()) titles[column] = small_text * ImGui::GetFontSize() + 4;
    }
    for (size_t column = 0; column < grid.columns; ++column) lefts[column] += titles[column];
    return lefts;
}

void shrink_to_squares(const analysis::Figure& figure, std::vector<float>& widths, std::vector<float>& heights) {
    if (figure.panels.empty() || !figure.panels.front().square_cells) return;
    ImVec2 largest{0, 0};
    for (const Panel& panel : figure.panels) {
        const ImVec2 size = size_with_equal_scales(panel, {widths[0], heights[0]});
        largest = {std::max(largest.x, size.x), std::max(largest.y, size.y)};
    }
    std::ranges::fill(heights, largest.y);
    std::ranges::fill(widths, largest.x);
}

}  // namespace

PanelLayout lay_out_panels(const analysis::Figure& figure, const FigureLook& look, ImVec2 room,
                           const std::function<analysis::Axis(size_t panel)>& shown_y) {
    const float em = ImGui::GetFontSize();
    const Grid grid = grid_of(figure, look, room, small_text * em + 4);
    PanelLayout layout = labels_of(figure, look, grid);
    const std::vector<float> bottoms = room_below(figure, grid, layout);
    float margins = static_cast<float>(grid.rows) * layout.title + static_cast<float>(grid.rows - 1) * row_gap_of(look);
    for (const float bottom : bottoms) margins += bottom;
    // The minimum height is smaller for a single row, so that the axis stays visible without scrolling.
    const float least_of_curves = (grid.rows == 1 ? 4 : 6) * em;
    const float usual_least = has_curves(figure) && !look.small ? least_of_curves : least_side();
    const float least = look.least_height > 0 ? look.least_height : usual_least;
    std::vector<float> heights = row_heights(figure, look, grid, room.y - margins, least);

    const std::vector<float> lefts = room_left(grid, layout, heights, 0.4f * room.x, shown_y);
    float across = room.x - static_cast<float>(grid.columns - 1) * gap_of(look) - (look.small ? 0 : 0.5f * em);
    for (const float left : lefts) across -= left;
    std::vector<float> widths = column_widths(figure, look, grid.columns, across);
    shrink_to_squares(figure, widths, heights);

    std::vector<float> xs, ys;
    float x = 0;
    for (size_t column = 0; column < grid.columns; ++column) {
        xs.push_back(x + lefts[column]);
        x = xs.back() + widths[column] + gap_of(look);
    }
    for (size_t row = 0; row < grid.rows; ++row) {
        ys.push_back(layout.height + layout.title);
        layout.height = ys.back() + heights[row] + bottoms[row] + row_gap_of(look);
    }
    layout.height -= 0.5f * em;
    for (size_t i = 0; i < grid.places.size(); ++i) {
        const auto [row, column] = grid.places[i];
        layout.panels[i].at = {xs[column], ys[row]};
        layout.panels[i].size = {widths[column], heights[row]};
        layout.panels[i].left = lefts[column];
    }
    return layout;
}

}  // namespace kvscope::gui
