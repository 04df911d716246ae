#pragma once

#include <memory>
#include <vector>

#include "engine/tokenizer/classifier/aligned_text.h"
#include "engine/tokenizer/tokenizer_json_node.h"
#include "engine/tokenizer/tokenizer_limits.h"

namespace kvscope::checkpoint {

/// Pre-tokenizer of an encoder's tokenizer.json. Cuts text into words.
class AlignedPreTokenizer {
 public:
    virtual ~AlignedPreTokenizer() = default;

    virtual void cut(const AlignedText& text, std::vector<AlignedText>& out, TokenizerLimits& limits) const = 0;
};

/// Supports Sequence, BertPreTokenizer, WhitespaceSplit and Metaspace. @throws std::runtime_error for other kinds
[[nodiscard]] std::unique_ptr<AlignedPreTokenizer> make_aligned_pre_tokenizer(const JsonNode& node);

}  // namespace kvscope::checkpoint
