#pragma once

#include <cstdint>
#include <span>

#include "engine/cache/run_cache.h"
#include "policies/interface/observations.h"

namespace kvscope::engine {

/// How far what a row's cache gives for tokens is from their own keys and values: the 2-norm of the difference over
/// that of what they are, both over all tokens that have an entry. The value of an entry with mass n stands for n
/// tokens, each of them gets the n-th part.
struct StorageError {
    float keys = 0;
    float values = 0;
};

/// @param token_entry (N) the row's entry that a token went into; -1: none
/// @param keys, values of the prompt, (G, N, d), those that the cache was compressed from
StorageError storage_error(const RunCache& cache, int layer, int row, std::span<const int32_t> token_entry,
                           const policies::EntriesView& keys, const policies::EntriesView& values, int head,
                           int head_dim);

}  // namespace kvscope::engine
