#pragma once

#include <string_view>

#include "engine/cache/run_cache.h"
#include "engine/model/transformer.h"
#include "policies/interface/policy.h"

namespace kvscope::engine {

/// A layer of a cache in which neighbours are merged while it decodes (Policy::decode_merging). Takes a token's queries
/// (H d), of the model's type and rotated, whose key and value the cache has already; behind every `every` of them what
/// lies before these tokens is merged back to the budget by what they attend to, in as many rounds as it takes.
/// @param label of the run, for messages
/// @param first_decoded position of the first decoded token: what lies between the run's N tokens and it is a question
///                      that was read after the compression, and stays whole
/// @throws what the policy and its checks throw; RunError for rows that hold different entries
void merge_decoded(const Transformer& model, int layer, const char* queries, policies::Policy& policy,
                   std::string_view label, int64_t first_decoded, RunCache& cache);

}  // namespace kvscope::engine
