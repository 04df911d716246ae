#pragma once

#include "engine/model/transformer.h"
#include "policies/api/kv_projection_weights.h"

namespace kvscope::engine {

/// Returns an f32 copy of a layer's key or value projection. @throws UsageError if the model has no such layer
[[nodiscard]] policies::Projection copy_projection_weights(const Transformer& model, int layer,
                                                           policies::Projected which);

}  // namespace kvscope::engine
