#pragma once

#include <string>

#include "analysis/figure.h"
#include "app/figures/figure_format.h"

namespace kvscope::figures {

/// A PDF, of a figure with several pages all of them, with fonts embedded as subsets and the recipe in its document
/// information (title, subject: caption, keywords: recipe). Its date is SOURCE_DATE_EPOCH where set, else that of the
/// data. @throws LayoutError, std::runtime_error where Cairo fails.
std::string render_pdf(const analysis::Figure& figure, const ExportOptions& options);

}  // namespace kvscope::figures
