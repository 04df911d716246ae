#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policies/interface/observations.h"

namespace kvscope::policies {

/// Returns ThinK's scores of a layer's key channels (G, d). The score of channel c of KV head g is the mean of q_ihc^2
/// over the last `window` prompt tokens i and the head's query heads h, times the mean of k_jc^2 over all tokens j.
/// This is proportional to the square of ThinK's ||Q_c K_c^T||_F and gives the same order.
/// @throws std::logic_error if fewer window queries were observed.
std::vector<float> channel_scores(const LayerObservations& observations, int window);

/// Returns the n channels with the highest scores, ascending.
std::vector<uint16_t> best_channels(std::span<const float> scores, int n);

}  // namespace kvscope::policies
