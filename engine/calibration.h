#pragma once

#include <memory>
#include <vector>

#include "engine/common/progress.h"
#include "engine/model/model.h"
#include "policies/interface/projection.h"

namespace kvscope::engine {

/// Statistics of a model's keys and values on the calibration text, the beginning of assets/training/english.txt, which
/// is compiled in. The model reads the first tokens in sequences, each as a separate prompt.
class Calibration {
 public:
    static constexpr size_t max_tokens = 4096;
    static constexpr size_t sequence = 1024;  ///< in tokens; shorter if the model's context is

    /// Reads the text, or takes the same numbers from the user's cache if an earlier job stored them.
    Calibration(const Model& model, Progress& progress);

    /// Returns the moments, as described at RunContext::calibration.
    std::vector<double> moments(int layer, policies::Projected which) const;

 private:
    size_t width_;             ///< G d
    std::vector<float> sums_;  ///< lower triangles, row by row, for each layer: of keys, then of values
};

/// Returns the model's calibration, which is computed once and kept with the model.
std::shared_ptr<const Calibration> calibration_of(const Model& model, Progress& progress);

}  // namespace kvscope::engine
