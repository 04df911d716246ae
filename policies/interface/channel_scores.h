#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policies/interface/observations.h"

namespace kvscope::policies {

/// ThinK's scores of a layer's key channels, (G, d): per KV head mean over i, h of q_ihc^2 times mean over j of k_jc^2,
/// i the last `window` prompt tokens, h the head's query heads, j all tokens: the square of ThinK's ||Q_c K_c^T||_F,
/// which orders channels alike.
/// @throws std::logic_error where fewer window queries were observed.
std::vector<float> channel_scores(const LayerObservations& observations, int window);

/// The n channels of the highest scores, ascending.
std::vector<uint16_t> best_channels(std::span<const float> scores, int n);

}  // namespace kvscope::policies
