#pragma once

#include "analysis/drawing/figure.h"

namespace kvscope::analysis {

/// Whether `above`, which is drawn later, hides `below`: both have equal x and no gaps, and y within 0.3 % of the axis.
[[nodiscard]] bool is_line_hidden_by(const Line& below, const Line& above, const Panel& panel);

/// Marks hidden series in the legend: "h2o (covered by cam)". Does nothing if several legend entries belong to one
/// series, such as several budgets of one policy.
void mark_hidden_series(Figure& figure);

/// Sets Rule::beside of horizontal lines that are so close that their labels would overlap.
void place_labels_side_by_side(Panel& panel);

}  // namespace kvscope::analysis
