#pragma once

#include <vector>

#include "analysis/drawing/figure.h"

namespace kvscope::analysis {

/// Whether `above`, which is drawn later, hides `below`: both have equal x and no gaps, and y within 0.3 % of the axis.
[[nodiscard]] bool is_line_hidden_by(const Line& below, const Line& above, const Panel& panel);

/// Marks covered lines in the legend: "h2o (under cam)". @param legend one entry per line of the panel, in order
void mark_hidden_lines_in_legend(std::vector<LegendEntry>& legend, const Panel& panel);

}  // namespace kvscope::analysis
