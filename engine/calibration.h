#pragma once

#include <memory>
#include <vector>

#include "engine/common/progress.h"
#include "engine/model/model.h"
#include "policies/interface/projection.h"

namespace kvscope::engine {

/// Statistics of a model's keys and values on the first tokens of assets/training/english.txt, in sequences.
class Calibration {
 public:
    static constexpr size_t max_tokens = 4096;
    static constexpr size_t sequence = 1024;  ///< length in tokens, at most the model's context

    /// Reads the text, or loads the results of an earlier job from the user's cache.
    Calibration(const Model& model, Progress& progress);

    /// Returns the moments, as described at RunContext::calibration.
    std::vector<double> moments(int layer, policies::Projected which) const;

 private:
    size_t width_;             ///< G d
    std::vector<float> sums_;  ///< lower triangles, row by row, for each layer: of keys, then of values
};

std::shared_ptr<const Calibration> calibration_of(const Model& model, Progress& progress);

}  // namespace kvscope::engine
