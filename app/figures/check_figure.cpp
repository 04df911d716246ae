#include "app/figures/check_figure.h"

#include <fmt/format.h>

#include <cmath>

#include "app/figures/layout.h"

namespace kvscope::figures {
namespace {

using analysis::Figure;

constexpr double largest_mm = 2000;

template <class... Arguments>
void require(bool fine, fmt::format_string<Arguments...> message, Arguments&&... arguments) {
    if (!fine) throw LayoutError(fmt::format(message, std::forward<Arguments>(arguments)...));
}

void check_axis(const Figure& figure, const analysis::Axis& axis, const std::string& panel) {
    require(std::isfinite(axis.min) && std::isfinite(axis.max) && axis.min < axis.max,
            "figure '{}', panel '{}': the axis '{}' has the invalid range {} to {}", figure.name, panel, axis.title,
            axis.min, axis.max);
    require(axis.scale == analysis::Scale::linear || axis.min > 0,
            "figure '{}', panel '{}': the logarithmic axis '{}' begins at {}, not above 0", figure.name, panel,
            axis.title, axis.min);
}

struct ShapeCheck {
    const Figure& figure;
    const std::string& panel;

    void grid(size_t rows, size_t columns, size_t n_values, double width, double height) const {
        require(rows > 0 && columns > 0 && n_values == rows * columns,
                "figure '{}', panel '{}': {} values for a map of {} x {} cells", figure.name, panel, n_values, rows,
                columns);
        require(width > 0 && height > 0, "figure '{}', panel '{}': a map needs a width and a height above 0",
                figure.name, panel);
    }
    void points(size_t n_x, size_t n_y) const {
        require(n_x == n_y, "figure '{}', panel '{}': {} x values but {} y values", figure.name, panel, n_x, n_y);
    }

    void operator()(const analysis::HeatMap& map) const {
        grid(map.rows, map.columns, map.values.size(), map.x_end - map.x_begin, map.y_end - map.y_begin);
        require(map.color_scale < figure.color_scales.size(), "figure '{}', panel '{}': color scale {} does not exist",
                figure.name, panel, map.color_scale);
    }
    void operator()(const analysis::Categories& map) const {
        grid(map.rows, map.columns, map.ids.size(), map.x_end - map.x_begin, map.y_end - map.y_begin);
    }
    void operator()(const analysis::Line& line) const {
        points(line.x.size(), line.y.size());
        require(line.low.size() == line.high.size() && (line.low.empty() || line.low.size() == line.x.size()),
                "figure '{}', panel '{}': the band and the line of '{}' have different numbers of values", figure.name,
                panel, line.label);
    }
    void operator()(const analysis::Bars& bars) const { points(bars.x.size(), bars.y.size()); }
    void operator()(const analysis::Scatter& scatter) const { points(scatter.x.size(), scatter.y.size()); }
    void operator()(const analysis::Rule&) const {}
    void operator()(const analysis::TextLabel&) const {}
};

}  // namespace

void check_figure(const Figure& figure) {
    require(!figure.panels.empty() && figure.rows > 0 && figure.columns > 0, "figure '{}' has no panels", figure.name);
    require(
        figure.width_mm > 0 && figure.width_mm <= largest_mm && figure.height_mm >= 0 && figure.height_mm <= largest_mm,
        "figure '{}': size {} mm x {} mm, but each side must be above 0 and at most {} mm", figure.name,
        figure.width_mm, figure.height_mm, largest_mm);
    require(figure.column_widths.empty() || figure.column_widths.size() == figure.columns,
            "figure '{}': {} column widths for {} columns", figure.name, figure.column_widths.size(), figure.columns);
    for (const double width : figure.column_widths) {
        require(width > 0, "figure '{}': a column has the invalid width {}", figure.name, width);
    }
    require(figure.row_heights.empty() || figure.row_heights.size() == figure.rows,
            "figure '{}': {} row heights for {} rows", figure.name, figure.row_heights.size(), figure.rows);
    for (const double height : figure.row_heights) {
        require(height > 0, "figure '{}': a row has the invalid height {}", figure.name, height);
    }
    for (const analysis::Panel& panel : figure.panels) {
        require(panel.row < figure.rows && panel.column < figure.columns,
                "figure '{}', panel '{}': row {}, column {} is outside a grid of {} x {}", figure.name, panel.title,
                panel.row, panel.column, figure.rows, figure.columns);
        check_axis(figure, panel.x, panel.title);
        check_axis(figure, panel.y, panel.title);
        for (const analysis::Shape& shape : panel.shapes) std::visit(ShapeCheck{figure, panel.title}, shape);
    }
}

}  // namespace kvscope::figures
