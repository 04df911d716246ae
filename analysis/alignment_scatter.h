#pragma once

#include "analysis/figure_definition.h"

/// Source `alignment` of the figure `spectrum`: the cosines between the loss gradient and c11, c12, c22 of each head.
namespace kvscope::analysis {

/// KVSlimmer's Figure 3: each pair of cos(E, c11), cos(E, c12) and cos(E, c22), one point per query head, colored by
/// layer. A dashed line shows the signs that Eq. 32 implies.
/// @throws NothingToShow if the trace has no `full/gradient_alignment`; FigureError
Figure make_alignment(const trace::Reader& reader, const FigureOptions& options, const std::vector<int>& layers);
/// The three cosines of each head. @throws as make_alignment()
Table alignment_numbers(const trace::Reader& reader, const FigureOptions& options, const std::vector<int>& layers);

}  // namespace kvscope::analysis
