#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/tables/token_text.h"

namespace kvscope::analysis {

/// Each token's embedding level by the Unicode bidirectional algorithm (UAX #9): what has an odd one is read from right
/// to left. A paragraph is what stands between line breaks, its direction that of its first letter. Empty where all of
/// the text is read from left to right.
std::vector<uint8_t> reading_levels(const WholeText& text);

/// Order in which neighbours stand from left to right in a line (rule L2). @param levels of the line's pieces
std::vector<size_t> visual_order(const std::vector<uint8_t>& levels);

}  // namespace kvscope::analysis
