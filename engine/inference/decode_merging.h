#pragma once

#include <string_view>

#include "engine/cache/run_cache.h"
#include "engine/model/transformer.h"
#include "policies/interface/policy.h"

namespace kvscope::engine {

/// Handles one decoded token in a layer whose neighbors are merged while decoding (Policy::decode_merging). The cache
/// must already hold the token's key and value. After every `every` tokens, merges the older entries back to the
/// budget, in as many rounds as needed. The last tokens' attention decides what is merged.
/// @param queries (H d) of the token, in the model's type, after RoPE
/// @param label the run's label, for messages
/// @param first_decoded position of the first decoded token. Entries from N up to this position belong to a question
/// that was read after compression; they are not merged.
/// @throws RunError if the layer's rows hold different entries; exceptions of the policy and of its checks
void merge_decoded(const Transformer& model, int layer, const char* queries, policies::Policy& policy,
                   std::string_view label, int64_t first_decoded, RunCache& cache);

}  // namespace kvscope::engine
