#pragma once

#include <vector>

#include "analysis/figure.h"

namespace kvscope::analysis {

/// Whether `above`, which is drawn later, covers `below` completely: it spans the same x, has no additional gaps, and
/// differs by at most 0.3 % of the axis, less than the width of a line. A curve without numbers is not covered.
bool is_hidden_by(const Line& below, const Line& above, const Panel& panel);

/// Extends the legend labels of covered lines with the visible line: "h2o (under cam)".
/// @param legend one entry per line of the panel, in the same order
void name_hidden_lines(std::vector<LegendEntry>& legend, const Panel& panel);

}  // namespace kvscope::analysis
