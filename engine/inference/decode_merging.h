#pragma once

#include <string_view>

#include "engine/cache/run_cache.h"
#include "engine/model/transformer.h"
#include "policies/interface/policy.h"

namespace kvscope::engine {

/// Merges entries of a layer back to the budget, after every `every` decoded tokens (Policy::decode_merging), by the
/// attention of these tokens. Must be called for each decoded token, after its key and value were appended.
/// @param queries (H d) of the token, in the model's type, after RoPE
/// @param first_decoded position of the first decoded token; a question before it is not merged
/// @throws RunError if the layer's rows hold different entries; exceptions of the policy and of its checks
void merge_decoded(const Transformer& model, int layer, const char* queries, policies::Policy& policy,
                   std::string_view label, int64_t first_decoded, RunCache& cache);

}  // namespace kvscope::engine
