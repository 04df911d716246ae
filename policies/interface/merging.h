#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "policies/interface/observations.h"

namespace kvscope::policies {

/// What a layer of a cache that merges its entries holds, and what some queries read there. All heads of the layer have
/// the same entries, each of them a run of consecutive tokens.
struct MergeObservations {
    int layer = 0;
    ModelShape shape;
    int64_t n_entries = 0;  ///< n
    /// Entries [whole_begin, whole_end) stay as they are: those of a question that was read after the compression.
    int64_t whole_begin = 0, whole_end = 0;
    EntriesView keys;               ///< (G, n, d) before RoPE
    EntriesView values;             ///< (G, n, d) sums over an entry's tokens
    std::span<const float> masses;  ///< (n) tokens of each entry
    int64_t n_queries = 0;          ///< that read them
    std::span<const float>
        attention;                   ///< (H, n) n_i exp(e_i) / sum n_j exp(e_j) over all that a query sees, their mean
    std::span<const float> outputs;  ///< (H, d) of the attention, their mean
    int64_t n_chunks = 0;            ///< of the prompt that were read before the queries' own
    /// The query is the prompt's last: its chunk is among the entries.
    bool behind_prompt = false;
    /// (G, n, d) gradient of the mean next-token loss of the queries' chunk by the keys, where `Needs::key_gradients`
    /// asks for it; empty where the layer was merged since, and for a chunk that has no loss.
    std::span<const float> key_gradients;

    /// Whether an entry and the next one may become one.
    bool may_merge(int64_t first) const { return first + 1 < whole_begin || first >= whole_end; }
};

/// Entries that become one with the next entry. Its value is the sum of theirs, its mass too; its last token is that of
/// the second one.
struct Merges {
    std::vector<uint32_t> first;  ///< ascending, no two overlap: entries first[i] and first[i] + 1
    std::vector<float> keys;      ///< (merges, G, d) the merged keys, before RoPE
    /// A merged entry's mass is at most this, whatever the sum of the two.
    float largest_mass = std::numeric_limits<float>::infinity();
    /// Of these, (merges, G), those that are not between their two: a weight is outside [0, 1].
    int64_t n_outside = 0;
};

}  // namespace kvscope::policies
