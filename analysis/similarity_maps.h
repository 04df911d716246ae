#pragma once

#include "analysis/figure_definition.h"

/// Similarity of keys and values between layers and between heads: sources of the figure `spectrum`.
namespace kvscope::analysis {

/// Draws two maps of layers × layers, for keys and for values.
/// @throws NothingToShow if the trace has no `full/layer_similarity` or fewer than two layers are shown; FigureError
Figure make_layer_similarity(const trace::Reader& reader, const FigureOptions& options);
Table layer_similarity_numbers(const trace::Reader& reader, const FigureOptions& options);

/// Draws a map of KV heads × KV heads for each layer: keys above, values below.
/// @throws NothingToShow if the trace has no `full/head_similarity` or the model has one KV head; FigureError
Figure make_head_similarity(const trace::Reader& reader, const FigureOptions& options, const std::vector<int>& layers);
Table head_similarity_numbers(const trace::Reader& reader, const FigureOptions& options,
                              const std::vector<int>& layers);

}  // namespace kvscope::analysis
