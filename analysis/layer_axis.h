#pragma once

#include <vector>

#include "analysis/figure.h"

namespace kvscope::analysis {

/// The axis on which the i-th of some layers is the interval from i - 1/2 to i + 1/2, labelled with the layers'
/// numbers. Layers without a gap that begin at 0 get ticks where there is room; others are labelled one by one.
Axis layer_axis(const std::vector<int>& layers);

/// The colour of the i-th of n layers: dark for the first, lighter for later ones, none too pale for paper.
Rgb layer_color(size_t i, size_t n);

}  // namespace kvscope::analysis
