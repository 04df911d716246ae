#include "app/figures/draw_figure.h"

#include "app/figures/draw_axes.h"
#include "app/figures/draw_layers.h"
#include "app/figures/draw_legend.h"
#include "app/figures/pen.h"
#include "app/figures/theme.h"

namespace kvscope::figures {
namespace {

bool has_map(const analysis::Panel& panel) {
    for (const analysis::Layer& layer : panel.layers) {
        if (std::holds_alternative<analysis::HeatMap>(layer) || std::holds_alternative<analysis::Categories>(layer)) return true;
    }
    return false;
}

void draw_panel_title(const Canvas& canvas, const analysis::Panel& panel, const Box& data) {
    const double y = data.y - theme::gap_pt / 2;
    const double note_width = panel.note.empty() ? 0 : measure_text(panel.note, panel_note_style()).width + theme::space_pt;
    const double room = data.width - note_width;
    const bool note_fits = room >= data.width / 3;
    const std::string title = fit_text(panel.title, panel_title_style(), note_fits ? room : data.width);
    draw_text(canvas.cr, title, panel_title_style(), data.x, y, HorizontalAlign::left, VerticalAlign::bottom);
    if (note_fits) {
        draw_text(canvas.cr, panel.note, panel_note_style(), data.right(), y, HorizontalAlign::right, VerticalAlign::bottom);
    }
}

}  // namespace

void draw_figure(const Canvas& canvas, const analysis::Figure& figure, const FigureLayout& layout) {
    set_color(canvas.cr, theme::ground);
    cairo_paint(canvas.cr);
    if (figure.show_title && !figure.title.empty()) {
        const std::string title = fit_text(figure.title, figure_title_style(), layout.width - 2 * theme::margin_pt);
        draw_text(canvas.cr, title, figure_title_style(), layout.width / 2, layout.title_y, HorizontalAlign::center,
                  VerticalAlign::top);
    }
    bool x_title_drawn = false;
    bool y_title_drawn = false;
    for (size_t i = 0; i < figure.panels.size(); ++i) {
        const analysis::Panel& panel = figure.panels[i];
        PanelPlace place = layout.panels[i];
        if (canvas.bitmap) place.data = on_pixels(canvas.cr, place.data);
        const bool map = has_map(panel);
        if (!map) draw_grid_lines(canvas, panel, place);
        cairo_save(canvas.cr);
        cairo_rectangle(canvas.cr, place.data.x, place.data.y, place.data.width, place.data.height);
        cairo_clip(canvas.cr);
        for (const analysis::Layer& layer : panel.layers) draw_layer(canvas, figure, panel, place.data, layer);
        cairo_restore(canvas.cr);
        draw_axes(canvas, panel, place, map);
        draw_panel_title(canvas, panel, place.data);
        // A title that all panels share stands once, in the middle of them all.
        if (place.x_labels && !(figure.shared_x && x_title_drawn)) {
            draw_x_title(canvas, panel, place, figure.shared_x ? layout.grid : place.data);
            x_title_drawn = true;
        }
        if (place.y_labels && !(figure.shared_y && y_title_drawn)) {
            draw_y_title(canvas, panel, place, figure.shared_y ? layout.grid : place.data);
            y_title_drawn = true;
        }
    }
    for (size_t i = 0; i < layout.color_bars.size(); ++i) {
        draw_color_bar(canvas, figure.color_scales[i], layout.color_bars[i]);
    }
    draw_legend(canvas, figure, layout.legend);
}

}  // namespace kvscope::figures
