#pragma once

#include <functional>

#include "engine/tokenizer/tokenizer_json_node.h"
#include "engine/tokenizer/tokenizer_limits.h"
#include "engine/tokenizer/traced_text.h"

namespace kvscope::checkpoint {

/// Normalizer of a tokenizer.json, which rewrites text before the pre-tokenizer cuts the text.
using Normalizer = std::function<TracedText(TracedView text, TokenizerLimits& limits)>;

/// Supports Sequence, NFC, NFD, NFKC, NFKD, Lowercase, Prepend, Replace, Strip. @throws std::runtime_error for others
[[nodiscard]] Normalizer make_normalizer(const JsonNode& node);

}  // namespace kvscope::checkpoint
