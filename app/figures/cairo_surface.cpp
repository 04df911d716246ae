#include "app/figures/cairo_surface.h"

#include <fmt/format.h>

#include <new>
#include <stdexcept>

#include "app/figures/draw_figure.h"
#include "app/figures/figure_text.h"
#include "app/figures/layout.h"

namespace kvscope::figures {

cairo_status_t append_bytes(void* closure, const unsigned char* data, unsigned int length) {
    try {
        static_cast<std::string*>(closure)->append(reinterpret_cast<const char*>(data), length);
    } catch (const std::bad_alloc&) {
        return CAIRO_STATUS_NO_MEMORY;
    }
    return CAIRO_STATUS_SUCCESS;
}

void draw_on(cairo_surface_t* surface, const analysis::Figure& figure, const FigureLayout& layout,
             const ExportOptions& options, bool bitmap, double units_per_point) {
    check_cairo(cairo_surface_status(surface), "creating the page");
    const std::unique_ptr<cairo_t, decltype(&cairo_destroy)> cr(cairo_create(surface), cairo_destroy);
    cairo_scale(cr.get(), units_per_point, units_per_point);
    draw_figure({cr.get(), options.dpi, bitmap}, figure, layout);
    check_cairo(cairo_status(cr.get()), "drawing");
}

void check_cairo(cairo_status_t status, const char* doing) {
    if (status == CAIRO_STATUS_SUCCESS) return;
    throw std::runtime_error(fmt::format("figure: {} failed: {}", doing, cairo_status_to_string(status)));
}

void check_dpi(double dpi) {
    if (dpi >= 10 && dpi <= 2400) return;
    throw FormatError(fmt::format("{} dots per inch: the resolution must be from 10 to 2,400", dpi));
}

std::string recipe_text(const analysis::Figure& figure, const std::string& separator) {
    std::string text = figure.caption;
    for (const auto& [name, value] : figure.recipe) {
        if (!text.empty()) text += separator;
        text += name + ": " + value;
    }
    return valid_text(text);
}

}  // namespace kvscope::figures
