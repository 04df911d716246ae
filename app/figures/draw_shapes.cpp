#include "app/figures/draw_shapes.h"

#include <algorithm>
#include <cmath>

#include "analysis/drawing/line_and_marker_shapes.h"
#include "app/figures/draw_axes.h"
#include "app/figures/draw_raster.h"
#include "app/figures/figure_text.h"
#include "app/figures/figure_theme.h"
#include "app/figures/pen.h"

namespace kvscope::figures {
namespace {

struct ShapePainter {
    const Canvas& canvas;
    const analysis::Figure& figure;
    const analysis::Panel& panel;
    const Box& data;

    double x_of(double x) const { return x_on_page(panel, data, x); }
    double y_of(double y) const { return y_on_page(panel, data, y); }

    void operator()(const analysis::HeatMap& map) const {
        const Window columns = visible_window(panel.x, map.x_begin, map.x_end, map.columns, false);
        const Window rows = visible_window(panel.y, map.y_begin, map.y_end, map.rows, true);
        draw_raster(canvas, data, columns, rows, [&](size_t width, size_t height) {
            return rasterize_map(map, figure.color_scales[map.color_scale], columns, rows, width, height,
                                 theme::ground);
        });
    }

    void operator()(const analysis::Categories& map) const {
        const Window columns = visible_window(panel.x, map.x_begin, map.x_end, map.columns, false);
        const Window rows = visible_window(panel.y, map.y_begin, map.y_end, map.rows, true);
        draw_raster(canvas, data, columns, rows, [&](size_t width, size_t height) {
            return rasterize_map(map, columns, rows, width, height, theme::ground);
        });
    }

    void operator()(const analysis::Line& line) const {
        cairo_t* cr = canvas.cr;
        draw_band(line);
        bool begun = false;
        for (size_t i = 0; i < line.x.size(); ++i) {
            if (std::isnan(line.y[i])) {
                begun = false;
                continue;
            }
            if (begun) {
                cairo_line_to(cr, x_of(line.x[i]), y_of(line.y[i]));
            } else {
                cairo_move_to(cr, x_of(line.x[i]), y_of(line.y[i]));
            }
            begun = true;
        }
        stroke_current_path(cr, line.style);
        if (line.arrow && line.x.size() > 1) draw_arrow_head(line);
        for (size_t i = 0; i < line.x.size(); ++i) {
            if (std::isnan(line.y[i])) continue;
            draw_marker(cr, line.style.marker, x_of(line.x[i]), y_of(line.y[i]), analysis::marker_size(line.style),
                        line.style.color);
        }
    }

    void draw_arrow_head(const analysis::Line& line) const {
        const size_t last = line.x.size() - 1;
        set_color(canvas.cr, line.style.color);
        cairo_new_path(canvas.cr);
        for (const auto& [x, y] : analysis::arrow_head({x_of(line.x[last - 1]), y_of(line.y[last - 1])},
                                                       {x_of(line.x[last]), y_of(line.y[last])}, 1))
            cairo_line_to(canvas.cr, x, y);
        cairo_close_path(canvas.cr);
        cairo_fill(canvas.cr);
    }

    void draw_band(const analysis::Line& line) const {
        if (line.low.empty()) return;
        cairo_t* cr = canvas.cr;
        set_color(cr, line.style.color, 0.2);
        cairo_new_path(cr);  // after a text, the path has a current point
        for (size_t i = 0; i < line.x.size(); ++i) cairo_line_to(cr, x_of(line.x[i]), y_of(line.high[i]));
        for (size_t i = line.x.size(); i-- > 0;) cairo_line_to(cr, x_of(line.x[i]), y_of(line.low[i]));
        cairo_close_path(cr);
        cairo_fill(cr);
    }

    void operator()(const analysis::Bars& bars) const {
        set_color(canvas.cr, bars.color);
        for (size_t i = 0; i < bars.x.size(); ++i) {
            if (std::isnan(bars.y[i])) continue;
            const double left = x_of(bars.x[i] - bars.width / 2);
            const double right = x_of(bars.x[i] + bars.width / 2);
            const double base = y_of(bars.base);
            const double end = y_of(bars.y[i]);
            cairo_rectangle(canvas.cr, std::min(left, right), std::min(base, end), std::fabs(right - left),
                            std::fabs(end - base));
        }
        cairo_fill(canvas.cr);
    }

    void operator()(const analysis::Scatter& scatter) const {
        for (size_t i = 0; i < scatter.x.size(); ++i) {
            if (std::isnan(scatter.x[i]) || std::isnan(scatter.y[i])) continue;
            draw_marker(canvas.cr, scatter.marker, x_of(scatter.x[i]), y_of(scatter.y[i]), scatter.size_pt,
                        scatter.color);
        }
    }

    void operator()(const analysis::Rule& rule) const {
        set_line(canvas.cr, rule.style);
        TextStyle style = tick_text_style();
        style.color = rule.style.color;
        if (rule.horizontal) {
            const double y = y_of(rule.value);
            stroke_segment(canvas.cr, data.x, y, data.right(), y);
            draw_text(canvas.cr, rule.label, style, data.x + theme::gap_pt, y, HorizontalAlign::left,
                      VerticalAlign::bottom);  // most curves leave this space free
        } else {
            const double x = x_of(rule.value);
            stroke_segment(canvas.cr, x, data.y, x, data.bottom());
            draw_text(canvas.cr, rule.label, style, x, data.y + theme::gap_pt, HorizontalAlign::right,
                      VerticalAlign::bottom, 1);
        }
    }

    void operator()(const analysis::TextLabel& label) const {
        const double width = std::abs(x_of(label.x + label.width) - x_of(label.x));
        draw_label(canvas.cr, label, theme::tick_text_pt, x_of(label.x), y_of(label.y), width);
    }
};

}  // namespace

void draw_shape(const Canvas& canvas, const analysis::Figure& figure, const analysis::Panel& panel, const Box& data,
                const analysis::Shape& shape) {
    std::visit(ShapePainter{canvas, figure, panel, data}, shape);
}

}  // namespace kvscope::figures
