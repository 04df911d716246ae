#pragma once

#include "analysis/figure_definition.h"

/// Source `alignment` of the figure `spectrum`: cosines between the loss gradient and KVSlimmer's terms c11, c12, c22.
namespace kvscope::analysis {

/// Draws KVSlimmer's Figure 3: each pair of the three cosines as points, one per query head.
/// @throws NothingToShow if the trace has no `full/gradient_alignment`; FigureError
Figure make_alignment(const trace::Reader& reader, const FigureOptions& options, const std::vector<int>& layers);
Table alignment_numbers(const trace::Reader& reader, const FigureOptions& options, const std::vector<int>& layers);

}  // namespace kvscope::analysis
