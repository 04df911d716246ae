#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trace/reader.h"

namespace kvscope::analysis {

/// A run's decode steps beside the full cache's, both fed the full run's tokens.
struct ComparedSteps {
    std::vector<float> kl;           ///< (T) KL(full || compressed), nats
    std::vector<uint8_t> agreement;  ///< (T) 1 where both would draw the same greedy token
};

/// Nothing of a run that was not compared.
/// @throws trace::DamagedTrace where the two do not hold the same number of steps, and what trace::Reader throws
std::optional<ComparedSteps> compared_steps(const trace::Reader& reader, int prompt, int run);

}  // namespace kvscope::analysis
