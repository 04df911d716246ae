#pragma once

#include <cairo.h>

#include <memory>
#include <string>

#include "analysis/drawing/figure.h"
#include "app/figures/figure_format.h"

namespace kvscope::figures {

struct DestroySurface {
    void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
};
using Surface = std::unique_ptr<cairo_surface_t, DestroySurface>;

/// Appends data from a Cairo stream to the std::string at `closure`.
[[nodiscard]] cairo_status_t append_bytes(void* closure, const unsigned char* data, unsigned int length);

/// Draws the figure without finishing the surface. @throws std::runtime_error with Cairo's message
void draw_on(cairo_surface_t* surface, const analysis::Figure& figure, const struct FigureLayout& layout,
             const ExportOptions& options, bool bitmap, double units_per_point);

/// @throws std::runtime_error with Cairo's message unless the status is success
void check_cairo(cairo_status_t status, const char* doing);

/// @throws FormatError for a resolution outside 10 to 2,400
void check_dpi(double dpi);

[[nodiscard]] std::string recipe_text(const analysis::Figure& figure, const std::string& separator);

}  // namespace kvscope::figures
