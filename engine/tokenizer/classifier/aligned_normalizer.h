#pragma once

#include <memory>

#include "engine/tokenizer/classifier/aligned_text.h"
#include "engine/tokenizer/tokenizer_json_node.h"
#include "engine/tokenizer/tokenizer_limits.h"

namespace kvscope::checkpoint {

/// Normalizer of an encoder's tokenizer.json that tracks the origin of each character.
class AlignedNormalizer {
 public:
    virtual ~AlignedNormalizer() = default;
    [[nodiscard]] virtual AlignedText apply(const AlignedText& text, TokenizerLimits& limits) const = 0;
};

/// Supports Sequence, BertNormalizer, Precompiled, Replace and Strip. @throws std::runtime_error for other kinds
[[nodiscard]] std::unique_ptr<AlignedNormalizer> make_aligned_normalizer(const JsonNode& node);

}  // namespace kvscope::checkpoint
