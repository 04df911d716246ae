#pragma once

#include <cstdint>
#include <span>

#include "engine/cache/run_cache.h"
#include "policies/api/observations.h"

namespace kvscope::engine {

/// Relative 2-norm errors of a row over tokens with an entry. Tokens of a merged entry get equal parts of its value.
struct StorageError {
    float keys = 0;
    float values = 0;
};

/// @param token_entry (N) index of each token's entry; -1 for dropped tokens
/// @param keys, values original vectors (G, N, d) of the prompt
[[nodiscard]] StorageError measure_storage_error(const RunCache& cache, int layer, int row,
                                                 std::span<const int32_t> token_entry,
                                                 const policies::EntriesView& keys, const policies::EntriesView& values,
                                                 int head, int head_dim);

}  // namespace kvscope::engine
