#pragma once

#include "engine/model/transformer.h"
#include "policies/interface/projection.h"

namespace kvscope::engine {

/// A copy in f32 of what a layer makes keys or values with.
/// @throws UsageError for a layer that the model does not have
policies::Projection projection_of(const Transformer& model, int layer, policies::Projected which);

}  // namespace kvscope::engine
