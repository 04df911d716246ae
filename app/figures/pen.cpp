#include "app/figures/pen.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "analysis/drawing/line_and_marker_shapes.h"

namespace kvscope::figures {
namespace {

constexpr double rim_pt = 0.25;

}  // namespace

void set_color(cairo_t* cr, analysis::Rgb color, double alpha) {
    cairo_set_source_rgba(cr, color.r / 255.0, color.g / 255.0, color.b / 255.0, alpha);
}

void set_line(cairo_t* cr, const analysis::LineStyle& style) {
    set_color(cr, style.color);
    cairo_set_line_width(cr, style.width_pt);
    cairo_set_line_join(cr, CAIRO_LINE_JOIN_ROUND);
    cairo_set_line_cap(cr, CAIRO_LINE_CAP_BUTT);
    const std::vector<double> dashes = analysis::dash_lengths(style);
    cairo_set_dash(cr, dashes.data(), static_cast<int>(dashes.size()), 0);
}

void stroke_segment(cairo_t* cr, double x0, double y0, double x1, double y1) {
    cairo_move_to(cr, x0, y0);
    cairo_line_to(cr, x1, y1);
    cairo_stroke(cr);
}

void stroke_current_path(cairo_t* cr, const analysis::LineStyle& style) {
    set_line(cr, style);
    if (analysis::wants_rim(style.color)) {
        set_color(cr, analysis::rim_of(style.color));
        cairo_set_line_width(cr, style.width_pt + 2 * rim_pt);
        cairo_stroke_preserve(cr);
        set_color(cr, style.color);
        cairo_set_line_width(cr, style.width_pt);
    }
    cairo_stroke(cr);
}

void draw_marker(cairo_t* cr, analysis::Marker marker, double x, double y, double size_pt, analysis::Rgb color) {
    if (marker == analysis::Marker::none) return;
    const double r = size_pt / 2;
    const std::vector<analysis::Corner> corners = analysis::marker_corners(marker);
    set_color(cr, color);
    if (marker == analysis::Marker::cross) {
        cairo_set_dash(cr, nullptr, 0, 0);
        cairo_set_line_width(cr, analysis::cross_stroke_width(size_pt));
        for (size_t i = 0; i < corners.size(); i += 2)
            stroke_segment(cr, x + r * corners[i][0], y + r * corners[i][1], x + r * corners[i + 1][0],
                           y + r * corners[i + 1][1]);
        return;
    }
    cairo_new_sub_path(cr);
    if (corners.empty()) cairo_arc(cr, x, y, r, 0, 2 * std::numbers::pi);
    for (const auto& [across, down] : corners) cairo_line_to(cr, x + r * across, y + r * down);
    if (!corners.empty()) cairo_close_path(cr);
    if (!analysis::wants_rim(color)) {
        cairo_fill(cr);
        return;
    }
    cairo_fill_preserve(cr);
    set_line(cr, {analysis::rim_of(color), analysis::Dash::solid, analysis::Marker::none, rim_pt});
    cairo_stroke(cr);
}

Box snap_to_pixels(cairo_t* cr, const Box& box) {
    double x0 = box.x;
    double y0 = box.y;
    double x1 = box.right();
    double y1 = box.bottom();
    cairo_user_to_device(cr, &x0, &y0);
    cairo_user_to_device(cr, &x1, &y1);
    x0 = std::round(x0);
    y0 = std::round(y0);
    x1 = std::max(std::round(x1), x0 + 1);
    y1 = std::max(std::round(y1), y0 + 1);
    cairo_device_to_user(cr, &x0, &y0);
    cairo_device_to_user(cr, &x1, &y1);
    return {x0, y0, x1 - x0, y1 - y0};
}

}  // namespace kvscope::figures
