#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "engine/options/run_options.h"

namespace kvscope::engine {

struct SamplingOptions {
    double temperature = 0;  ///< 0: greedy
    double top_p = 1;        ///< nucleus: the fewest best tokens whose probabilities reach it; 1: all
    uint64_t seed = 0;
};

SamplingOptions sampling_of(const RunOptions& options);

/// Draws tokens from logits; one for each run, all with the same seed.
class Sampler {
 public:
    /// @throws UsageError for a negative temperature or a top_p outside (0, 1].
    explicit Sampler(const SamplingOptions& options);

    /// Of equal logits the lowest id. @throws RunError where the logits hold NaN.
    int32_t next(std::span<const float> logits);

 private:
    SamplingOptions options_;
    std::mt19937_64 random_;
    std::vector<std::pair<float, int32_t>> candidates_;
};

/// @throws RunError always: logits hold NaN
[[noreturn]] void refuse_nan();

/// The lowest id of the largest logit. @throws RunError for a NaN
int32_t greedy_token(std::span<const float> logits);

}  // namespace kvscope::engine
