#pragma once

#include "analysis/figure_definition.h"

/// Similarity of keys and values between layers and between heads: sources of the figure `spectrum`.
namespace kvscope::analysis {

/// Returns two maps of layers × layers, for keys and for values. The diagonal is empty. All layers are shown by
/// default.
/// @throws NothingToShow if the trace has no `full/layer_similarity` or fewer than two layers are shown; FigureError
Figure make_layer_similarity(const trace::Reader& reader, const FigureOptions& options);
/// Returns one row per pair of layers. @throws as make_layer_similarity()
Table layer_similarity_numbers(const trace::Reader& reader, const FigureOptions& options);

/// Returns a map of KV heads × KV heads for each layer: keys above, values below. The diagonal is empty.
/// @throws NothingToShow if the trace has no `full/head_similarity` or the model has one KV head; FigureError
Figure make_head_similarity(const trace::Reader& reader, const FigureOptions& options, const std::vector<int>& layers);
/// Returns one row per layer and pair of heads. @throws as make_head_similarity()
Table head_similarity_numbers(const trace::Reader& reader, const FigureOptions& options,
                              const std::vector<int>& layers);

}  // namespace kvscope::analysis
