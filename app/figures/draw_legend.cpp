#include "app/figures/draw_legend.h"

#include "app/figures/draw_raster.h"
#include "app/figures/figure_theme.h"
#include "app/figures/heat_map_raster.h"
#include "app/figures/pen.h"

namespace kvscope::figures {
namespace {

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

}  // namespace

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

}  // namespace kvscope::figures
