#pragma once

#include <string>

#include "analysis/figure.h"
#include "app/figures/figure_format.h"

namespace kvscope::figures {

/// An SVG, text as outlines, maps as embedded images that viewers are told not to smooth, caption and recipe in <desc>.
/// @throws LayoutError, std::runtime_error where Cairo fails.
std::string render_svg(const analysis::Figure& figure, const ExportOptions& options);

}  // namespace kvscope::figures
