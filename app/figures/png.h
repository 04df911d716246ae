#pragma once

#include <string>

#include "analysis/drawing/figure.h"
#include "app/figures/figure_format.h"

namespace kvscope::figures {

/// Returns a PNG with resolution, title, caption and recipe as metadata. @throws LayoutError; FormatError for a
/// resolution outside 10 to 2,400 or a side above 32,767 pixels; std::runtime_error for an error of Cairo
[[nodiscard]] std::string render_png(const analysis::Figure& figure, const ExportOptions& options);

}  // namespace kvscope::figures
