#pragma once

#include <vector>

#include "trace/reader.h"

namespace kvscope::analysis {

/// Checks that head_divergence() has its data. @throws NothingToShow with the missing data; FigureError for an unknown
/// prompt
void require_head_divergence(const trace::Reader& reader, int prompt);

/// Returns (G): each KV head's mean Jensen-Shannon divergence from the layer's other heads in nats (kv_head_jsd); NaN
/// for a head without attention or in a layer with one head.
std::vector<double> head_divergence(const trace::Reader& reader, int prompt, size_t layer);

}  // namespace kvscope::analysis
