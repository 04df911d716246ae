#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trace/reader.h"

namespace kvscope::analysis {

/// Comparison of a run with the full run at each decode step. Both runs get the full run's answer as input.
struct StepDivergence {
    std::vector<float> kl;           ///< (T) KL(full || compressed) in nats
    std::vector<uint8_t> agreement;  ///< (T) 1 if both runs predict the same greedy token
};

/// Returns nullopt for a run that was not compared. @throws trace::DamagedTrace if the data sets differ in length
[[nodiscard]] std::optional<StepDivergence> read_step_divergence(const trace::Reader& reader, int prompt, int run);

}  // namespace kvscope::analysis
