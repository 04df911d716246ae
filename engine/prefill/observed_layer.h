#pragma once

#include <vector>

#include "engine/cache/dense_cache.h"
#include "policies/api/observations.h"

namespace kvscope::engine {

/// Copy of a layer's observations for later decisions, with the memory that they refer to.
struct ObservedLayer {
    ObservedLayer(const policies::LayerObservations& observed, DenseLayer shared);
    ObservedLayer(const ObservedLayer&) = delete;
    ObservedLayer& operator=(const ObservedLayer&) = delete;

    DenseLayer dense;
    std::vector<float> window_queries;
    std::vector<float> attention_sums;
    policies::LayerObservations observations;
};

}  // namespace kvscope::engine
