#pragma once

#include <string>

#include "analysis/drawing/figure.h"
#include "app/figures/figure_format.h"

namespace kvscope::figures {

/// Returns an SVG with texts as outlines, and with caption and recipe in <desc>. @throws as render_pdf()
std::string render_svg(const analysis::Figure& figure, const ExportOptions& options);

}  // namespace kvscope::figures
