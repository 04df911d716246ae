#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/tables/token_text.h"

namespace kvscope::analysis {

/// Embedding levels of the Unicode bidirectional algorithm (UAX #9). Text with an odd level is read from right to left.
/// Both lists are empty if all text is read from left to right.
struct ReadingLevels {
    std::vector<uint8_t> tokens;
    std::vector<uint8_t> paragraphs;  ///< level of the paragraph in which each token begins

    [[nodiscard]] uint8_t of(size_t token) const { return tokens.empty() ? uint8_t{0} : tokens[token]; }
    [[nodiscard]] bool is_turned(size_t token) const { return !paragraphs.empty() && paragraphs[token] % 2 == 1; }
};

[[nodiscard]] ReadingLevels compute_bidirectional_levels(const WholeText& text);

/// Returns the order of a line's pieces from left to right (UAX #9, rule L2). @param levels of the pieces
[[nodiscard]] std::vector<size_t> visual_order(const std::vector<uint8_t>& levels);

}  // namespace kvscope::analysis
