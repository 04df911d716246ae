#pragma once

#include "analysis/figure_definition.h"

/// How alike keys and values are between layers and between heads: sources of the figure `spectrum`.
namespace kvscope::analysis {

/// One map of layers × layers for keys and one for values, of the layers that the options name (all by default). A
/// layer with itself is left out.
/// @throws NothingToShow where the trace has no `full/layer_similarity` or fewer than two layers are shown; FigureError
Figure make_layer_similarity(const trace::Reader& reader, const FigureOptions& options);
/// Each two of the layers once; throws the same.
Table layer_similarity_numbers(const trace::Reader& reader, const FigureOptions& options);

/// A map of KV heads × KV heads for each of the layers, of keys, and beneath it of values. A head with itself is left
/// out.
/// @throws NothingToShow where the trace has no `full/head_similarity` or the model one KV head; FigureError
Figure make_head_similarity(const trace::Reader& reader, const FigureOptions& options, const std::vector<int>& layers);
/// Each two heads of a layer once; throws the same.
Table head_similarity_numbers(const trace::Reader& reader, const FigureOptions& options,
                              const std::vector<int>& layers);

}  // namespace kvscope::analysis
