#pragma once

#include <vector>

#include "analysis/figure.h"

namespace kvscope::analysis {

/// Whether nothing of a curve is seen below another one that is drawn later in the panel: the upper one goes on where
/// the lower one does, has no gaps that the lower one lacks, and is as high there to 0.3 % of the axis, which is less
/// than a line's width. A curve without a number is not hidden: there is none.
bool is_hidden_by(const Line& below, const Line& above, const Panel& panel);

/// Of lines that are one, as of policies that keep the same, the last one is seen: the legend says under which the
/// others are, "h2o (under cam)". @param legend an entry for each line of the panel, in their order
void name_hidden_lines(std::vector<LegendEntry>& legend, const Panel& panel);

}  // namespace kvscope::analysis
