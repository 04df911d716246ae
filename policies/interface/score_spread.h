#pragma once

#include <span>

namespace kvscope::policies {

/// How much the scores of one head differ among its tokens.

/// Standard deviation over all values (divided by their number); 0 for none.
double standard_deviation(std::span<const float> scores);

/// Entropy in nats of the scores divided by their sum; 0 where that is not above 0. Scores must not be negative.
double entropy(std::span<const float> scores);

}  // namespace kvscope::policies
