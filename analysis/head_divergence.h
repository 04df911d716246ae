#pragma once

#include <vector>

#include "trace/reader.h"

namespace kvscope::analysis {

/// @throws NothingToShow if mean_head_divergences_of_layer() lacks data; FigureError for an unknown prompt
void require_head_divergence(const trace::Reader& reader, int prompt);

/// Returns each KV head's mean divergence from the other heads of the layer, in nats (kv_head_jsd); NaN if unknown.
[[nodiscard]] std::vector<double> mean_head_divergences_of_layer(const trace::Reader& reader, int prompt, size_t layer);

}  // namespace kvscope::analysis
