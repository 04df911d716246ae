#pragma once

#include "analysis/drawing/figure_definition.h"

namespace kvscope::analysis {

/// Draws KVSlimmer's Figure 3: the cosines of c11, c12 and c22 with the loss gradient, one point per query head.
/// @throws NothingToShow if the trace has no `full/gradient_alignment`; FigureError for invalid options
[[nodiscard]] Figure make_gradient_alignment_figure(const trace::Reader& reader, const FigureOptions& options,
                                                    const std::vector<int>& layers);
Table alignment_numbers(const trace::Reader& reader, const FigureOptions& options, const std::vector<int>& layers);

}  // namespace kvscope::analysis
