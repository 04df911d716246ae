#pragma once

#include "analysis/drawing/figure_definition.h"

namespace kvscope::analysis {

/// Draws two maps of layers × layers, for keys and for values.
/// @throws NothingToShow if `full/layer_similarity` is missing or fewer than two layers are shown
[[nodiscard]] Figure make_layer_similarity(const trace::Reader& reader, const FigureOptions& options);
Table layer_similarity_numbers(const trace::Reader& reader, const FigureOptions& options);

/// Draws a map of KV heads × KV heads for each layer: keys above, values below.
/// @throws NothingToShow if `full/head_similarity` is missing or the model has one KV head
[[nodiscard]] Figure make_head_similarity_figure(const trace::Reader& reader, const FigureOptions& options,
                                                 const std::vector<int>& layers);
Table head_similarity_numbers(const trace::Reader& reader, const FigureOptions& options,
                              const std::vector<int>& layers);

}  // namespace kvscope::analysis
