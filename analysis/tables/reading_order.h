#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/tables/token_text.h"

namespace kvscope::analysis {

/// Embedding levels by the Unicode bidirectional algorithm (UAX #9): what has an odd one is read from right to left. A
/// paragraph is what stands between line breaks, its direction that of its first letter. Empty where all of the text is
/// read from left to right.
struct ReadingLevels {
    std::vector<uint8_t> tokens;      ///< each token's
    std::vector<uint8_t> paragraphs;  ///< of the paragraph in which each token begins

    uint8_t of(size_t token) const { return tokens.empty() ? uint8_t{0} : tokens[token]; }
    /// Whether the paragraph is read from right to left.
    bool is_turned(size_t token) const { return !paragraphs.empty() && paragraphs[token] % 2 == 1; }
};

ReadingLevels reading_levels(const WholeText& text);

/// Order in which neighbours stand from left to right in a line (rule L2). @param levels of the line's pieces
std::vector<size_t> visual_order(const std::vector<uint8_t>& levels);

}  // namespace kvscope::analysis
