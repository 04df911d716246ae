#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policies/interface/observations.h"

namespace kvscope::policies {

/// Returns ThinK's scores of key channels (G, d): the mean of q_ihc^2 over the last `window` prompt tokens i and the
/// group's heads h, times the mean of k_jc^2 over all tokens j.
/// @throws std::logic_error if fewer window queries were observed.
std::vector<float> channel_scores(const LayerObservations& observations, int window);

std::vector<uint16_t> best_channels(std::span<const float> scores, int n);

}  // namespace kvscope::policies
