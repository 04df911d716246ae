#pragma once

#include <cstdint>
#include <vector>

#include "app/gui/session/prompt_text.h"

namespace kvscope::gui {

/// Each token's embedding level by the Unicode bidirectional algorithm (UAX #9): what has an odd one is read from right
/// to left. A paragraph is what stands between line breaks, its direction that of its first letter. Empty where all of
/// the prompt is read from left to right.
std::vector<uint8_t> reading_levels(const PromptText& prompt);

/// Order in which neighbours stand from left to right in a line (rule L2). @param levels of the line's pieces
std::vector<size_t> visual_order(const std::vector<uint8_t>& levels);

}  // namespace kvscope::gui
