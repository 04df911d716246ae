#pragma once

#include <memory>
#include <vector>

#include "engine/tokenizer/aligned_text.h"
#include "engine/tokenizer/tokenizer_json_node.h"

namespace kvscope::checkpoint {

/// The pre-tokenizer of an encoder's tokenizer.json. It cuts text into the words that the model encodes separately.
/// Kinds: Sequence, BertPreTokenizer, WhitespaceSplit, Metaspace.
class AlignedPreTokenizer {
 public:
    virtual ~AlignedPreTokenizer() = default;

    /// Appends the non-empty parts of `text` to `out`.
    virtual void cut(const AlignedText& text, std::vector<AlignedText>& out) const = 0;
};

/// @throws std::runtime_error for other kinds, and for missing or invalid fields
std::unique_ptr<AlignedPreTokenizer> make_aligned_pre_tokenizer(const JsonNode& node);

}  // namespace kvscope::checkpoint
