#pragma once

#include <string_view>

#include "engine/cache/run_cache.h"
#include "engine/model/transformer.h"
#include "policies/interface/policy.h"

namespace kvscope::engine {

/// Merges a layer's entries back to the budget after every few decoded tokens (Policy::decode_merging), by the
/// attention of these tokens. Call for each decoded token, after its key and value were appended.
/// @param queries (H d) of the token, in the model's type, after RoPE
/// @param first_decoded position of the first decoded token; entries of a question before it are not merged
/// @throws RunError if the layer's rows hold different entries; exceptions of the policy
void merge_decoded(const Transformer& model, int layer, const char* queries, policies::Policy& policy,
                   std::string_view label, int64_t first_decoded, RunCache& cache);

}  // namespace kvscope::engine
