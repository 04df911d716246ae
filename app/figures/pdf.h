#pragma once

#include <string>

#include "analysis/figure.h"
#include "app/figures/figure_format.h"

namespace kvscope::figures {

/// Returns a PDF with all pages, embedded fonts and the recipe as metadata, dated SOURCE_DATE_EPOCH or else as the
/// trace.
/// @throws LayoutError; std::runtime_error for an error of Cairo
std::string render_pdf(const analysis::Figure& figure, const ExportOptions& options);

}  // namespace kvscope::figures
