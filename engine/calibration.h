#pragma once

#include <memory>
#include <vector>

#include "engine/common/progress.h"
#include "engine/model/model.h"
#include "policies/interface/projection.h"

namespace kvscope::engine {

/// What a model's keys and values are like on the calibration text: the beginning of assets/training/english.txt, which
/// is compiled in. The model reads its first tokens, each sequence as a prompt of its own.
class Calibration {
 public:
    static constexpr size_t max_tokens = 4096;
    static constexpr size_t sequence = 1024;  ///< tokens, or the model's context where that is shorter

    /// Reads the text, or takes what an earlier job has kept in the user's cache: the same numbers.
    /// @throws Cancelled
    Calibration(const Model& model, Progress& progress);

    /// As RunContext::calibration has it.
    std::vector<double> moments(int layer, policies::Projected which) const;

 private:
    size_t width_;             ///< G d
    std::vector<float> sums_;  ///< lower triangles, row after row: by layer, of keys and then of values
};

/// The model's own, which is found once and kept as long as the model.
/// @throws Cancelled
std::shared_ptr<const Calibration> calibration_of(const Model& model, Progress& progress);

}  // namespace kvscope::engine
