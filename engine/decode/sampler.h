#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "engine/options/run_options.h"

namespace kvscope::engine {

struct SamplingOptions {
    double temperature = 0;  ///< 0 for greedy decoding
    double top_p = 1;        ///< total probability of the tokens to draw from (nucleus sampling); 1 for all
    uint64_t seed = 0;
};

[[nodiscard]] SamplingOptions sampling_of(const RunOptions& options);

/// Draws tokens from logits. Each run has its own sampler with the same seed.
class Sampler {
 public:
    explicit Sampler(const SamplingOptions& options);

    /// Draws a token; with temperature 0, the lowest id among the largest logits. @throws RunError for NaN
    [[nodiscard]] int32_t next(std::span<const float> logits);

 private:
    SamplingOptions options_;
    std::mt19937_64 random_;
    std::vector<std::pair<float, int32_t>> candidates_;
};

[[noreturn]] void refuse_nan();

int32_t greedy_token(std::span<const float> logits);

}  // namespace kvscope::engine
