#pragma once

#include <memory>

#include "engine/tokenizer/tokenizer_json_node.h"
#include "engine/tokenizer/tokenizer_limits.h"
#include "engine/tokenizer/traced_text.h"

namespace kvscope::checkpoint {

/// Normalizer of a tokenizer.json, which rewrites text before the pre-tokenizer cuts the text.
class Normalizer {
 public:
    virtual ~Normalizer() = default;
    [[nodiscard]] virtual TracedText apply(TracedView text, TokenizerLimits& limits) const = 0;
};

/// Supports Sequence, NFC, NFD, NFKC, NFKD, Lowercase, Prepend, Replace, Strip. @throws std::runtime_error for others
[[nodiscard]] std::unique_ptr<Normalizer> make_normalizer(const JsonNode& node);

}  // namespace kvscope::checkpoint
