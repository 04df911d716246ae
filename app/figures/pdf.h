#pragma once

#include <string>

#include "analysis/drawing/figure.h"
#include "app/figures/figure_format.h"

namespace kvscope::figures {

/// Returns a PDF with all pages, embedded fonts, the recipe, and the date of SOURCE_DATE_EPOCH (default: of the trace).
/// @throws LayoutError; std::runtime_error for an error of Cairo
[[nodiscard]] std::string render_pdf(const analysis::Figure& figure, const ExportOptions& options);

}  // namespace kvscope::figures
