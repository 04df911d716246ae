#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "analysis/figure.h"

namespace kvscope::analysis {

/// Returns the titles of all panels. If one does not fit, all are shortened: "L12" for "Layer 12" and "Keys L12" for
/// "Keys, layer 12", then "12" and "K L12"; the caller cuts titles that still do not fit. With headings that name the
/// traces (Figure::trace_by_trace), titles omit them.
/// @param fits whether a text fits above a panel
/// @param with_headings whether headings are drawn
std::vector<std::string> panel_titles(const Figure& figure,
                                      const std::function<bool(size_t panel, const std::string& text)>& fits,
                                      bool with_headings = false);

/// Returns the name of the trace whose panels begin in this row; else an empty text.
std::string heading_of_row(const Figure& figure, size_t row);

}  // namespace kvscope::analysis
