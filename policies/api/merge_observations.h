#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "policies/api/observations.h"

namespace kvscope::policies {

/// One layer's entries in a cache that merges entries, and the attention of the observing queries to these entries. All
/// heads have the same entries. Each entry covers consecutive tokens.
struct MergeObservations {
    int layer = 0;
    ModelShape shape;
    int64_t n_entries = 0;
    /// Entries [whole_begin, whole_end) belong to a question read after the compression. They are never merged.
    int64_t whole_begin = 0, whole_end = 0;
    EntriesView keys;               ///< (G, n, d) before RoPE
    EntriesView values;             ///< (G, n, d) sums over the tokens of an entry
    std::span<const float> masses;  ///< (n) number of tokens in each entry
    int64_t n_queries = 0;          ///< number of observing queries
    /// (H, n) attention n_i exp(e_i) / sum n_j exp(e_j), averaged over the queries. The sum covers all visible entries.
    std::span<const float> attention;
    std::span<const float> outputs;  ///< (H, d) mean attention output over the queries
    int64_t n_chunks = 0;            ///< number of prompt chunks read before the queries' own chunk
    /// Whether the only query is the prompt's last query. The entries of its chunk are then in the cache.
    bool after_prompt = false;
    /// (G, n, d) gradient of the mean next-token loss of the queries' chunk with respect to the keys. Empty if the
    /// layer has merged entries since the gradient was computed, or if the chunk has no loss.
    std::span<const float> key_gradients;

    [[nodiscard]] bool may_merge(int64_t first) const { return first + 1 < whole_begin || first >= whole_end; }
};

/// Pairs of neighboring entries to merge. A merged entry has summed values, summed masses and the later position.
struct Merges {
    std::vector<uint32_t> first;  ///< ascending, without overlap: entries first[i] and first[i] + 1 are merged
    std::vector<float> keys;      ///< (merges, G, d) the merged keys, before RoPE
    float largest_mass = std::numeric_limits<float>::infinity();
    /// Number of merged keys with a weight outside [0, 1], at most merges * G.
    int64_t n_outside = 0;
};

}  // namespace kvscope::policies
