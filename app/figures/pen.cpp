#include "app/figures/pen.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace kvscope::figures {
namespace {

constexpr double kRimPt = 0.25;

/// Okabe and Ito's yellow, above all.
bool is_pale(analysis::Rgb c) { return 0.2126 * c.r + 0.7152 * c.g + 0.0722 * c.b > 200; }

analysis::Rgb rim_of(analysis::Rgb c) {
    const auto darker = [](uint8_t channel) { return static_cast<uint8_t>(channel * 0.55); };
    return {darker(c.r), darker(c.g), darker(c.b)};
}

}  // namespace

void set_color(cairo_t* cr, analysis::Rgb color, double alpha) {
    cairo_set_source_rgba(cr, color.r / 255.0, color.g / 255.0, color.b / 255.0, alpha);
}

void set_line(cairo_t* cr, const analysis::LineStyle& style) {
    set_color(cr, style.color);
    cairo_set_line_width(cr, style.width_pt);
    cairo_set_line_join(cr, CAIRO_LINE_JOIN_ROUND);
    cairo_set_line_cap(cr, CAIRO_LINE_CAP_BUTT);
    std::vector<double> dashes;
    switch (style.dash) {
        case analysis::Dash::solid:
            break;
        case analysis::Dash::dashed:
            dashes = {4, 2};
            break;
        case analysis::Dash::dotted:
            dashes = {1, 1.5};
            break;
        case analysis::Dash::dash_dotted:
            dashes = {4, 1.5, 1, 1.5};
            break;
    }
    const double unit = std::max(style.width_pt, 0.75);
    for (double& dash : dashes) dash *= unit;
    cairo_set_dash(cr, dashes.data(), static_cast<int>(dashes.size()), 0);
}

void stroke_segment(cairo_t* cr, double x0, double y0, double x1, double y1) {
    cairo_move_to(cr, x0, y0);
    cairo_line_to(cr, x1, y1);
    cairo_stroke(cr);
}

void stroke_line(cairo_t* cr, const analysis::LineStyle& style) {
    set_line(cr, style);
    if (is_pale(style.color)) {
        set_color(cr, rim_of(style.color));
        cairo_set_line_width(cr, style.width_pt + 2 * kRimPt);
        cairo_stroke_preserve(cr);
        set_color(cr, style.color);
        cairo_set_line_width(cr, style.width_pt);
    }
    cairo_stroke(cr);
}

void draw_marker(cairo_t* cr, analysis::Marker marker, double x, double y, double size_pt, analysis::Rgb color) {
    const double r = size_pt / 2;
    set_color(cr, color);
    switch (marker) {
        case analysis::Marker::none:
            return;
        case analysis::Marker::circle:
            cairo_new_sub_path(cr);
            cairo_arc(cr, x, y, r, 0, 2 * std::numbers::pi);
            break;
        case analysis::Marker::square:
            cairo_rectangle(cr, x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r);
            break;
        case analysis::Marker::triangle:
            cairo_move_to(cr, x, y - 1.15 * r);
            cairo_line_to(cr, x + 1.05 * r, y + 0.75 * r);
            cairo_line_to(cr, x - 1.05 * r, y + 0.75 * r);
            cairo_close_path(cr);
            break;
        case analysis::Marker::diamond:
            cairo_move_to(cr, x, y - 1.2 * r);
            cairo_line_to(cr, x + 1.2 * r, y);
            cairo_line_to(cr, x, y + 1.2 * r);
            cairo_line_to(cr, x - 1.2 * r, y);
            cairo_close_path(cr);
            break;
        case analysis::Marker::cross:
            cairo_set_dash(cr, nullptr, 0, 0);
            cairo_set_line_width(cr, std::max(0.75, size_pt / 4));
            stroke_segment(cr, x - r, y - r, x + r, y + r);
            stroke_segment(cr, x - r, y + r, x + r, y - r);
            return;
    }
    if (!is_pale(color)) {
        cairo_fill(cr);
        return;
    }
    cairo_fill_preserve(cr);
    set_line(cr, {rim_of(color), analysis::Dash::solid, analysis::Marker::none, kRimPt});
    cairo_stroke(cr);
}

Box on_pixels(cairo_t* cr, const Box& box) {
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
