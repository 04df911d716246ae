#pragma once

#include <string_view>

#include "engine/cache/run_cache.h"
#include "engine/model/transformer.h"
#include "policies/api/further_interfaces.h"

namespace kvscope::engine {

/// Merges a layer's entries down to the budget after every `decode_merging().every` decoded tokens. The attention of
/// these tokens determines which entries merge. Call this function after a decoded token's key and value were appended.
/// @param queries (H d) of the token, in the model's type, after RoPE
/// @param first_decoded position of the first decoded token; entries of a preceding question are not merged
/// @throws RunError if the layer's rows hold different entries; exceptions of the policy
void merge_decoded(const Transformer& model, int layer, const char* queries, policies::ReadsThroughOwnCache& policy,
                   std::string_view label, int64_t first_decoded, RunCache& cache);

}  // namespace kvscope::engine
