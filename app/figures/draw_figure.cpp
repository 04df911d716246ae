#include "app/figures/draw_figure.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "analysis/drawing/line_and_marker_shapes.h"
#include "analysis/drawing/panel_titles.h"
#include "app/figures/draw_axes.h"
#include "app/figures/draw_raster.h"
#include "app/figures/figure_text.h"
#include "app/figures/figure_theme.h"
#include "app/figures/heat_map_raster.h"
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
            const double beside = rule.beside.empty() ? 0 : measure_text(rule.beside, style).width;
            draw_text(canvas.cr, rule.label, style, data.x + theme::gap_pt + beside, y, HorizontalAlign::left,
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

/// Draws the bands of all lines, which must not cover another line.
void draw_bands(const Canvas& canvas, const analysis::Figure& figure, const analysis::Panel& panel, const Box& data) {
    const ShapePainter painter{canvas, figure, panel, data};
    for (const analysis::Shape& shape : panel.shapes)
        if (const auto* line = std::get_if<analysis::Line>(&shape)) painter.draw_band(*line);
}

/// Draws one shape of a panel without the band of a line. `data` is the panel's data area; the caller sets the clip
/// region.
void draw_shape(const Canvas& canvas, const analysis::Figure& figure, const analysis::Panel& panel, const Box& data,
                const analysis::Shape& shape) {
    std::visit(ShapePainter{canvas, figure, panel, data}, shape);
}

constexpr size_t n_bar_steps = 256;

void draw_patches(const Canvas& canvas, const analysis::ColorScale& scale, const Box& bar, size_t n) {
    const double width = bar.width / static_cast<double>(n);
    const int n_ground = scale.background_label.empty() ? 0 : 1;
    for (size_t i = 0; i < n; ++i) {
        const double value = scale.min + static_cast<double>(static_cast<int>(i) - n_ground);
        set_color(canvas.cr, color_of_value(scale, value, theme::ground));
        cairo_rectangle(canvas.cr, bar.x + width * static_cast<double>(i), bar.y, width, bar.height);
        cairo_fill(canvas.cr);
    }
    set_line(canvas.cr, {theme::ink, analysis::Dash::solid, analysis::Marker::none, theme::frame_pt / 2});
    for (size_t i = 1; i < n; ++i) {
        const double x = bar.x + width * static_cast<double>(i);
        stroke_segment(canvas.cr, x, bar.y, x, bar.bottom());
    }
}

void draw_gradient(const Canvas& canvas, const analysis::ColorScale& scale, const Box& bar) {
    Raster raster{n_bar_steps, 1, {}};
    for (size_t i = 0; i < n_bar_steps; ++i) {
        const double share = (static_cast<double>(i) + 0.5) / n_bar_steps;
        raster.pixels.push_back(
            analysis::color_at(scale.map, scale.map_begin + share * (scale.map_end - scale.map_begin)));
    }
    draw_image(canvas, bar, raster);
}

void stroke_frame(cairo_t* cr, const Box& box) {
    const double outside = theme::frame_pt / 2;
    set_line(cr, {theme::ink, analysis::Dash::solid, analysis::Marker::none, theme::frame_pt});
    cairo_set_line_join(cr, CAIRO_LINE_JOIN_MITER);
    cairo_rectangle(cr, box.x - outside, box.y - outside, box.width + 2 * outside, box.height + 2 * outside);
    cairo_stroke(cr);
}

void draw_symbol(const Canvas& canvas, const analysis::LegendEntry& entry, double x, double y, double height) {
    cairo_t* cr = canvas.cr;
    switch (entry.symbol) {
        case analysis::LegendEntry::Symbol::line:
            cairo_move_to(cr, x, y);
            cairo_line_to(cr, x + legend_symbol_pt, y);
            stroke_current_path(cr, entry.style);
            draw_marker(cr, entry.style.marker, x + legend_symbol_pt / 2, y, 3.2, entry.style.color);
            break;
        case analysis::LegendEntry::Symbol::patch:
            set_color(cr, entry.style.color);
            cairo_rectangle(cr, x + legend_symbol_pt * 0.2, y - height * 0.3, legend_symbol_pt * 0.6, height * 0.6);
            cairo_fill(cr);
            break;
        case analysis::LegendEntry::Symbol::marker:
            draw_marker(cr, entry.style.marker, x + legend_symbol_pt / 2, y, 3.6, entry.style.color);
            break;
        case analysis::LegendEntry::Symbol::none:
            break;
    }
}

/// Draws a color bar: a patch for each value if the scale has few whole numbers, otherwise a gradient.
void draw_color_bar(const Canvas& canvas, const analysis::ColorScale& scale, const ColorBarPlace& place) {
    cairo_t* cr = canvas.cr;
    const Box bar = canvas.bitmap ? snap_to_pixels(cr, place.bar) : place.bar;
    if (const size_t n = count_color_patches(scale); n > 0) {
        draw_patches(canvas, scale, bar, n);
    } else {
        draw_gradient(canvas, scale, bar);
    }
    stroke_frame(cr, bar);
    if (place.ground_patch.width > 0) {
        const Box& patch = place.ground_patch;
        stroke_frame(cr, canvas.bitmap ? snap_to_pixels(cr, patch) : patch);
        draw_text(cr, scale.background_label, tick_text_style(), patch.x + patch.width / 2,
                  patch.bottom() + theme::tick_length_pt, HorizontalAlign::center, VerticalAlign::top);
    }
    set_line(cr, {theme::ink, analysis::Dash::solid, analysis::Marker::none, theme::tick_pt});
    for (const analysis::Tick& tick : place.ticks.ticks) {
        const double x = bar.x + tick.value * bar.width;
        if (count_color_patches(scale) == 0) {
            stroke_segment(cr, x, bar.bottom() + theme::frame_pt, x,
                           bar.bottom() + theme::frame_pt + theme::tick_length_pt);
        }
        draw_text(cr, tick.label, tick_text_style(), x, bar.bottom() + theme::tick_length_pt, HorizontalAlign::center,
                  VerticalAlign::top);
    }
    draw_text(cr, place.title, axis_title_style(), place.title_box.x, place.title_box.y, HorizontalAlign::left,
              VerticalAlign::top);
}

void draw_legend(const Canvas& canvas, const analysis::Figure& figure, const LegendPlace& place) {
    for (size_t i = 0; i < figure.legend.size(); ++i) {
        const analysis::LegendEntry& entry = figure.legend[i];
        const double x = place.box.x + place.column_width * static_cast<double>(place.cells[i].column);
        const double y = place.box.y + place.line_height * (static_cast<double>(place.cells[i].line) + 0.5);
        draw_symbol(canvas, entry, x, y, place.line_height);
        const double room = place.column_width - legend_symbol_pt - theme::gap_pt;
        draw_text(canvas.cr, fit_text(entry.label, tick_text_style(), room), tick_text_style(),
                  x + legend_symbol_pt + theme::gap_pt, y, HorizontalAlign::left, VerticalAlign::middle);
    }
}

bool has_map(const analysis::Panel& panel) {
    for (const analysis::Shape& shape : panel.shapes) {
        if (std::holds_alternative<analysis::HeatMap>(shape) || std::holds_alternative<analysis::Categories>(shape))
            return true;
    }
    return false;
}

/// Whether all panels have space for their notes. Notes in only some panels would suggest that the panels differ.
bool notes_fit(const analysis::Figure& figure, const std::vector<std::string>& titles, const FigureLayout& layout) {
    for (size_t i = 0; i < figure.panels.size(); ++i) {
        const double needed = measure_text(titles[i], panel_title_style()).width + theme::space_pt +
                              measure_text(figure.panels[i].note, panel_note_style()).width;
        if (needed > layout.panels[i].data.width) return false;
    }
    return true;
}

/// Shortens a run's label but keeps the budget, which distinguishes panels of one policy.
std::string fit_title(const std::string& title, double width) {
    const TextStyle style = panel_title_style();
    const size_t budget = title.rfind(" @ ");
    if (budget == std::string::npos || measure_text(title, style).width <= width) return fit_text(title, style, width);
    const std::string tail = title.substr(budget);
    const std::string policy = fit_text(title.substr(0, budget), style, width - measure_text(tail, style).width);
    return policy.empty() ? fit_text(tail.substr(1), style, width) : policy + tail;
}

void draw_panel_title(const Canvas& canvas, const std::string& title, const std::string& note, const Box& data) {
    const double y = data.y - theme::gap_pt / 2;
    draw_text(canvas.cr, fit_title(title, data.width), panel_title_style(), data.x, y, HorizontalAlign::left,
              VerticalAlign::bottom);
    if (!note.empty())
        draw_text(canvas.cr, note, panel_note_style(), data.right(), y, HorizontalAlign::right, VerticalAlign::bottom);
}

/// Returns the largest number of rectangles per map. A rectangle takes 250 bytes in an SVG, so all maps share a limit.
size_t most_rectangles(const analysis::Figure& figure) {
    constexpr size_t most_of_figure = 16384;
    const auto n_maps = std::ranges::count_if(figure.panels, has_map);
    return std::min(Canvas().most_rectangles, most_of_figure / static_cast<size_t>(std::max<ptrdiff_t>(n_maps, 1)));
}

}  // namespace

void draw_figure(const Canvas& on, const analysis::Figure& figure, const FigureLayout& layout) {
    Canvas canvas = on;
    canvas.most_rectangles = most_rectangles(figure);
    set_color(canvas.cr, theme::ground);
    cairo_paint(canvas.cr);
    if (figure.show_title && !figure.title.empty()) {
        const std::string title = fit_text(figure.title, figure_title_style(), layout.width - 2 * theme::margin_pt);
        draw_text(canvas.cr, title, figure_title_style(), layout.width / 2, layout.title_y, HorizontalAlign::center,
                  VerticalAlign::top);
    }
    for (const RowHeading& heading : layout.headings) {
        draw_text(canvas.cr, fit_text(heading.text, figure_title_style(), layout.grid.right() - heading.x),
                  figure_title_style(), heading.x, heading.y, HorizontalAlign::left, VerticalAlign::top);
    }
    const auto titles = analysis::panel_titles(
        figure,
        [&](size_t panel, const std::string& text) {
            return measure_text(text, panel_title_style()).width <= layout.panels[panel].data.width;
        },
        true);
    const bool with_notes = notes_fit(figure, titles, layout);
    bool x_title_drawn = false;
    bool y_title_drawn = false;
    for (size_t i = 0; i < figure.panels.size(); ++i) {
        const analysis::Panel& panel = figure.panels[i];
        PanelPlace place = layout.panels[i];
        if (canvas.bitmap) place.data = snap_to_pixels(canvas.cr, place.data);
        const bool map = has_map(panel);
        if (!map) draw_grid_lines(canvas, panel, place);
        cairo_save(canvas.cr);
        cairo_rectangle(canvas.cr, place.data.x, place.data.y, place.data.width, place.data.height);
        cairo_clip(canvas.cr);
        draw_bands(canvas, figure, panel, place.data);
        for (const analysis::Shape& shape : panel.shapes) draw_shape(canvas, figure, panel, place.data, shape);
        cairo_restore(canvas.cr);
        draw_axes(canvas, panel, place, map);
        draw_panel_title(canvas, titles[i], with_notes ? panel.note : "", place.data);
        // A title that all panels share is drawn once, centered over all panels.
        if (place.x_labels && !(figure.shared_x && x_title_drawn)) {
            draw_x_title(canvas, panel, place, figure.shared_x ? layout.grid : place.data, layout.width);
            x_title_drawn = true;
        }
        if (place.y_labels && !(figure.shared_y && y_title_drawn)) {
            draw_y_title(canvas, panel, place, figure.shared_y ? layout.grid : place.data, layout.height);
            y_title_drawn = true;
        }
    }
    for (size_t i = 0; i < layout.color_bars.size(); ++i)
        draw_color_bar(canvas, figure.color_scales[i], layout.color_bars[i]);
    draw_legend(canvas, figure, layout.legend);
}

}  // namespace kvscope::figures
