#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "analysis/drawing/figure.h"

namespace kvscope::analysis {

/// Returns the titles of all panels, abbreviated until each fits: "Keys, layer 12", "Keys L12", "K L12".
/// @param fits whether a text fits above a panel
/// @param with_headings whether headings name the traces, so that titles omit them
[[nodiscard]] std::vector<std::string> panel_titles(
    const Figure& figure, const std::function<bool(size_t panel, const std::string& text)>& fits,
    bool with_headings = false);

/// Returns the name of the trace whose panels begin in this row, or an empty text.
[[nodiscard]] std::string trace_heading_of_row(const Figure& figure, size_t row);

}  // namespace kvscope::analysis
