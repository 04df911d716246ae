#pragma once

#include "analysis/figure.h"

namespace kvscope::analysis {

/// Whether nothing of a curve is seen below another one that is drawn later in the panel: the upper one goes on where
/// the lower one does, has no gaps that the lower one lacks, and is as high there to 0.3 % of the axis, which is less
/// than a line's width. A curve without a number is not hidden: there is none.
bool is_hidden_by(const Line& below, const Line& above, const Panel& panel);

}  // namespace kvscope::analysis
