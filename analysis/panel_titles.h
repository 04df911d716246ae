#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "analysis/figure.h"

namespace kvscope::analysis {

/// What stands above a figure's panels, panel by panel: their titles, or, where one of them has no room for it, shorter
/// ones in all of them: "L12" for "Layer 12" and "Keys L12" for "Keys, layer 12", then "12" and "K L12". What does not
/// fit even so is left to the caller to cut. Where headings name the traces (Figure::trace_by_trace) titles do not.
/// @param fits whether a text fits above a panel
/// @param with_headings whether they are drawn
std::vector<std::string> panel_titles(const Figure& figure,
                                      const std::function<bool(size_t panel, const std::string& text)>& fits,
                                      bool with_headings = false);

/// The name of the trace whose panels begin with this row, to stand above it; empty elsewhere.
std::string heading_of_row(const Figure& figure, size_t row);

}  // namespace kvscope::analysis
