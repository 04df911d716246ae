#pragma once

#include <cstdint>
#include <vector>

#include "trace/records/kept.h"

namespace kvscope::analysis {

/// Returns the largest cardinality of each token's entries in each layer (L, N); 0 for dropped tokens.
[[nodiscard]] std::vector<float> largest_cardinality_per_token(const trace::Kept& kept, size_t n_tokens);

/// Returns largest_cardinality_per_token() with every second merged entry reduced by 20 %, so that adjacent entries
/// differ in color.
[[nodiscard]] std::vector<float> cardinalities_in_alternating_shades(const trace::Kept& kept, size_t n_tokens);

/// Adjacent tokens of a row that share one entry.
struct EntryTokens {
    uint32_t first = 0, last = 0;  ///< The entry has the position of the last token.
    float cardinality = 1;
};

[[nodiscard]] std::vector<EntryTokens> list_merged_entries(const trace::Kept& kept, size_t layer, size_t row,
                                                           size_t n_tokens);

}  // namespace kvscope::analysis
