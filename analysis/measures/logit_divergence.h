#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace kvscope::analysis {

/// Summary of a run's divergence from the full run over all decode steps.
struct LogitDivergence {
    size_t n_steps = 0;
    double kl_mean = 0;
    double kl_stderr = 0;  ///< sample standard deviation / sqrt(T), for independent steps; NaN if T < 2
    double kl_median = 0;
    double kl_p95 = 0;  ///< 95th percentile with linear interpolation, as in NumPy
    double kl_max = 0;
    double agreement = 0;  ///< share of steps with the same greedy token
    std::optional<size_t> first_disagreement;
};

/// Returns NaN for all measures if there are no steps. @throws std::invalid_argument if the lengths differ
/// @param step_kl (T) KL(full || compressed) in nats
/// @param step_agreement (T) 1 if both runs predict the same greedy token
[[nodiscard]] LogitDivergence logit_divergence(std::span<const float> step_kl, std::span<const uint8_t> step_agreement);

}  // namespace kvscope::analysis
