#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/find_phrases.h"

namespace kvscope::checkpoint {

/// Returns the tokens with a byte of one of the ranges of the text, ascending. A token with a part of a character
/// counts as the whole character. @param ends Encoding::ends
[[nodiscard]] std::vector<uint32_t> tokens_of_ranges(std::span<const uint32_t> ends, std::vector<ByteRange> ranges);

}  // namespace kvscope::checkpoint
