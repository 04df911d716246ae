#include "app/figures/draw_figure.h"

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/drawing/panel_titles.h"
#include "app/figures/draw_axes.h"
#include "app/figures/draw_legend.h"
#include "app/figures/draw_shapes.h"
#include "app/figures/figure_theme.h"
#include "app/figures/pen.h"

namespace kvscope::figures {
namespace {

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
    if (!note.empty()) {
        draw_text(canvas.cr, note, panel_note_style(), data.right(), y, HorizontalAlign::right, VerticalAlign::bottom);
    }
}

/// Returns the largest number of rectangles per map. A rectangle takes 250 bytes in an SVG, so all maps share a limit.
size_t most_rectangles(const analysis::Figure& figure) {
    constexpr size_t most_of_figure = 16384;
    const auto n_maps = std::count_if(figure.panels.begin(), figure.panels.end(), has_map);
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
    for (size_t i = 0; i < layout.color_bars.size(); ++i) {
        draw_color_bar(canvas, figure.color_scales[i], layout.color_bars[i]);
    }
    draw_legend(canvas, figure, layout.legend);
}

}  // namespace kvscope::figures
