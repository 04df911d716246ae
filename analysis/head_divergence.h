#pragma once

#include <vector>

#include "trace/reader.h"

namespace kvscope::analysis {

/// What head_divergence() needs. @throws NothingToShow that says what is not recorded; FigureError for a prompt that is
/// not there
void require_head_divergence(const trace::Reader& reader, int prompt);

/// (G): of each KV head of a layer the mean Jensen-Shannon divergence of its attention from that of the layer's others
/// (kv_head_jsd), in nats; NaN for a head without attention, or without others.
std::vector<double> head_divergence(const trace::Reader& reader, int prompt, size_t layer);

}  // namespace kvscope::analysis
