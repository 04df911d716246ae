#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policies/api/observations.h"

namespace kvscope::policies {

/// Returns ThinK's scores of key channels (G, d): the mean of q^2 over the last `window` tokens and the group's heads,
/// times the mean of k^2 over all tokens. @throws std::logic_error if fewer queries were observed
[[nodiscard]] std::vector<float> channel_scores(const LayerObservations& observations, int window);

[[nodiscard]] std::vector<uint16_t> best_channels(std::span<const float> scores, int n);

}  // namespace kvscope::policies
