#pragma once

#include <cstdint>
#include <vector>

#include "trace/kept.h"

namespace kvscope::analysis {

/// Returns (L, N): the cardinality of the token's entry, the largest over the layer's rows; 0 if every row dropped it.
std::vector<float> entry_sizes(const trace::Kept& kept, size_t n_tokens);

/// Returns entry_sizes() for maps. Every second merged entry of a layer's first row is 20 % smaller, so that the colors
/// of adjacent entries differ.
std::vector<float> shaded_entry_sizes(const trace::Kept& kept, size_t n_tokens);

/// Adjacent tokens of a row that share one entry.
struct EntryTokens {
    uint32_t first = 0, last = 0;  ///< The entry has the position of the last token.
    float cardinality = 1;
};

/// Returns the merged entries of a row in ascending order.
std::vector<EntryTokens> merged_entries(const trace::Kept& kept, size_t layer, size_t row, size_t n_tokens);

}  // namespace kvscope::analysis
