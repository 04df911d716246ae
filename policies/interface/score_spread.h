#pragma once

#include <span>

namespace kvscope::policies {

/// Returns the population standard deviation of one head's scores; 0 if there are none.
double standard_deviation(std::span<const float> scores);

/// Returns the entropy in nats of the scores divided by their sum; 0 if the sum is not above 0. Requires scores of at
/// least 0.
double entropy(std::span<const float> scores);

}  // namespace kvscope::policies
