#include "app/figures/draw_axes.h"

#include <algorithm>

#include "app/figures/figure_theme.h"
#include "app/figures/fit_ticks.h"
#include "app/figures/pen.h"

namespace kvscope::figures {
namespace {

constexpr analysis::Rgb grid_line_color{226, 226, 226};

analysis::LineStyle axis_line(double width_pt) {
    return {theme::ink, analysis::Dash::solid, analysis::Marker::none, width_pt};
}

double on_page(const std::string& title, double middle, double page_length) {
    const double half = measure_text(title, axis_title_style()).width / 2;
    return std::clamp(middle, std::min(half, page_length / 2), std::max(page_length - half, page_length / 2));
}

}  // namespace

double x_on_page(const analysis::Panel& panel, const Box& data, double x) {
    return data.x + position_on_axis(panel.x, x) * data.width;
}

double y_on_page(const analysis::Panel& panel, const Box& data, double y) {
    return data.bottom() - position_on_axis(panel.y, y) * data.height;
}

void draw_grid_lines(const Canvas& canvas, const analysis::Panel& panel, const PanelPlace& place) {
    set_line(canvas.cr, {grid_line_color, analysis::Dash::solid, analysis::Marker::none, 0.4});
    for (const analysis::Tick& tick : place.y_ticks.ticks) {
        const double y = y_on_page(panel, place.data, tick.value);
        stroke_segment(canvas.cr, place.data.x, y, place.data.right(), y);
    }
}

void draw_axes(const Canvas& canvas, const analysis::Panel& panel, const PanelPlace& place, bool framed) {
    cairo_t* cr = canvas.cr;
    const Box& data = place.data;
    // Draw the frame just outside the data, so that it does not cover the cells at the map's edge.
    const double outside = theme::frame_pt / 2 + 0.02;
    set_line(cr, axis_line(theme::frame_pt));
    cairo_set_line_join(cr, CAIRO_LINE_JOIN_MITER);
    if (framed) {
        cairo_rectangle(cr, data.x - outside, data.y - outside, data.width + 2 * outside, data.height + 2 * outside);
    } else {
        cairo_move_to(cr, data.x - outside, data.y);
        cairo_line_to(cr, data.x - outside, data.bottom() + outside);
        cairo_line_to(cr, data.right(), data.bottom() + outside);
    }
    cairo_stroke(cr);

    set_line(cr, axis_line(theme::tick_pt));
    for (const analysis::Tick& tick : place.x_ticks.ticks) {
        const double x = x_on_page(panel, data, tick.value);
        const double y = data.bottom() + theme::frame_pt;
        stroke_segment(cr, x, y, x, y + theme::tick_length_pt);
    }
    for (const analysis::Tick& tick : place.y_ticks.ticks) {
        const double y = y_on_page(panel, data, tick.value);
        const double x = data.x - theme::frame_pt;
        stroke_segment(cr, x - theme::tick_length_pt, y, x, y);
    }
    if (place.x_labels) {
        const double y = data.bottom() + theme::tick_length_pt + theme::gap_pt / 2;
        for (const analysis::Tick& tick : place.x_ticks.ticks) {
            draw_text(cr, tick.label, tick_text_style(), x_on_page(panel, data, tick.value), y, HorizontalAlign::center,
                      VerticalAlign::top);
        }
    }
    if (place.y_labels) {
        const double x = data.x - theme::tick_length_pt - theme::gap_pt / 2;
        for (const analysis::Tick& tick : place.y_ticks.ticks) {
            draw_text(cr, tick.label, tick_text_style(), x, y_on_page(panel, data, tick.value), HorizontalAlign::right,
                      VerticalAlign::middle);
        }
    }
}

void draw_x_title(const Canvas& canvas, const analysis::Panel& panel, const PanelPlace& place, const Box& across,
                  double page_width) {
    const std::string title = fit_text(analysis::axis_title(panel.x.title, panel.x.unit, place.x_ticks.exponent),
                                       axis_title_style(), page_width);
    draw_text(canvas.cr, title, axis_title_style(), on_page(title, across.x + across.width / 2, page_width),
              place.x_title_y, HorizontalAlign::center, VerticalAlign::top);
}

void draw_y_title(const Canvas& canvas, const analysis::Panel& panel, const PanelPlace& place, const Box& across,
                  double page_height) {
    const std::string title = fit_text(analysis::axis_title(panel.y.title, panel.y.unit, place.y_ticks.exponent),
                                       axis_title_style(), page_height);
    draw_text(canvas.cr, title, axis_title_style(), place.y_title_x,
              on_page(title, across.y + across.height / 2, page_height), HorizontalAlign::center, VerticalAlign::top,
              1);
}

}  // namespace kvscope::figures
