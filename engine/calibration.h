#pragma once

#include <memory>
#include <vector>

#include "engine/common/progress.h"
#include "engine/model/model.h"
#include "policies/api/kv_projection_weights.h"

namespace kvscope::engine {

/// Second moments of a model's keys and values for the beginning of assets/training/english.txt.
class Calibration {
 public:
    static constexpr size_t max_tokens = 4096;
    static constexpr size_t sequence = 1024;  ///< tokens of a sequence, at most the model's context

    /// Computes the moments, or loads them from the user's cache.
    Calibration(const Model& model, Progress& progress);

    [[nodiscard]] std::vector<double> moments(int layer, policies::Projected which) const;

 private:
    size_t width_;             ///< G d
    std::vector<float> sums_;  ///< lower triangles by row: for each layer, first keys, then values
};

std::shared_ptr<const Calibration> find_or_make_calibration(const Model& model, Progress& progress);

}  // namespace kvscope::engine
