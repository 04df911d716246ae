#pragma once

#include <functional>

#include "engine/tokenizer/classifier/aligned_text.h"
#include "engine/tokenizer/tokenizer_json_node.h"
#include "engine/tokenizer/tokenizer_limits.h"

namespace kvscope::checkpoint {

/// Normalizer of an encoder's tokenizer.json that tracks the origin of each character.
using AlignedNormalizer = std::function<AlignedText(const AlignedText& text, TokenizerLimits& limits)>;

/// Supports Sequence, BertNormalizer, Precompiled, Replace and Strip. @throws std::runtime_error for other kinds
[[nodiscard]] AlignedNormalizer make_aligned_normalizer(const JsonNode& node);

}  // namespace kvscope::checkpoint
