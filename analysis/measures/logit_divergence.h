#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace kvscope::analysis {

/// A run's decode steps beside the full cache's: step_kl (T), KL(full || compressed) in nats; step_agreement (T), 1
/// where both would draw the same greedy token.
struct LogitDivergence {
    size_t n_steps = 0;
    double kl_mean = 0;
    double kl_stderr = 0;  ///< sample standard deviation / sqrt T, steps taken as independent; NaN below two steps
    double kl_median = 0;
    double kl_p95 = 0;  ///< percentiles: linear between the closest ranks, as NumPy
    double kl_max = 0;
    double agreement = 0;  ///< share of steps
    std::optional<size_t> first_disagreement;
};

/// All measures of no steps are NaN. @throws std::invalid_argument when the two lengths differ.
LogitDivergence logit_divergence(std::span<const float> step_kl, std::span<const uint8_t> step_agreement);

}  // namespace kvscope::analysis
