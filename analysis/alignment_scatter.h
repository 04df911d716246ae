#pragma once

#include "analysis/figure_definition.h"

/// How each query head's c11, c12 and c22 lie to the gradient of the loss: a source of the figure `spectrum`.
namespace kvscope::analysis {

/// KVSlimmer's Figure 3: each two of cos(E, c11), cos(E, c12), cos(E, c22) against each other, one point for each query
/// head of the layers, in its layer's colour; a dashed line where Eq. 32 has them.
/// @throws NothingToShow where the trace has no `full/gradient_alignment`; FigureError
Figure make_alignment(const trace::Reader& reader, const FigureOptions& options, const std::vector<int>& layers);
/// The three cosines of each of these heads; throws the same.
Table alignment_numbers(const trace::Reader& reader, const FigureOptions& options, const std::vector<int>& layers);

}  // namespace kvscope::analysis
