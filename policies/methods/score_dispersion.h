#pragma once

#include <span>

namespace kvscope::policies {

[[nodiscard]] double standard_deviation(std::span<const float> scores);

/// Returns the entropy in nats of non-negative scores divided by their sum; 0 if the sum is 0.
[[nodiscard]] double entropy(std::span<const float> scores);

}  // namespace kvscope::policies
