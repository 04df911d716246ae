#pragma once

#include <functional>
#include <vector>

#include "engine/tokenizer/classifier/aligned_text.h"
#include "engine/tokenizer/tokenizer_json_node.h"
#include "engine/tokenizer/tokenizer_limits.h"

namespace kvscope::checkpoint {

/// Pre-tokenizer of an encoder's tokenizer.json, which cuts text into words and appends them to `out`.
using AlignedPreTokenizer =
    std::function<void(const AlignedText& text, std::vector<AlignedText>& out, TokenizerLimits& limits)>;

/// Supports Sequence, BertPreTokenizer, WhitespaceSplit and Metaspace. @throws std::runtime_error for other kinds
[[nodiscard]] AlignedPreTokenizer make_aligned_pre_tokenizer(const JsonNode& node);

}  // namespace kvscope::checkpoint
