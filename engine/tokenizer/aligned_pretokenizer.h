#pragma once

#include <memory>
#include <vector>

#include "engine/tokenizer/aligned_text.h"
#include "engine/tokenizer/tokenizer_json_node.h"

namespace kvscope::checkpoint {

/// The pre-tokenizer of an encoder's tokenizer.json. It cuts text into words, which the model encodes separately.
class AlignedPreTokenizer {
 public:
    virtual ~AlignedPreTokenizer() = default;

    /// Appends the non-empty parts of `text` to `out`.
    virtual void cut(const AlignedText& text, std::vector<AlignedText>& out) const = 0;
};

/// Kinds: Sequence, BertPreTokenizer, WhitespaceSplit, Metaspace. @throws std::runtime_error for others
std::unique_ptr<AlignedPreTokenizer> make_aligned_pre_tokenizer(const JsonNode& node);

}  // namespace kvscope::checkpoint
