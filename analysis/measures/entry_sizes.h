#pragma once

#include <cstdint>
#include <vector>

#include "trace/kept.h"

namespace kvscope::analysis {

/// (L, N): the cardinality of the entry that a token went into, the largest of the layer's rows; 0 where no row holds
/// the token.
/// @param n_tokens N
std::vector<float> entry_sizes(const trace::Kept& kept, size_t n_tokens);

/// The same for maps in which neighbours have to be told apart: every second merged entry of a layer's first row counts
/// as a fifth less.
std::vector<float> shaded_entry_sizes(const trace::Kept& kept, size_t n_tokens);

/// Neighbouring tokens of a row that went into one entry.
struct EntryTokens {
    uint32_t first = 0, last = 0;  ///< the entry stands at the last one
    float cardinality = 1;
};

/// The merged entries of a row, in order.
std::vector<EntryTokens> merged_entries(const trace::Kept& kept, size_t layer, size_t row, size_t n_tokens);

}  // namespace kvscope::analysis
