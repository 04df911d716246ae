#pragma once

#include <string>

#include "analysis/figure.h"
#include "app/figures/figure_format.h"

namespace kvscope::figures {

/// A PNG that knows its resolution, with title, caption and recipe as text chunks. @throws LayoutError, FormatError for
/// a resolution outside 10 to 2,400 or an image above 32,767 pixels a side, std::runtime_error where Cairo fails.
std::string render_png(const analysis::Figure& figure, const ExportOptions& options);

}  // namespace kvscope::figures
