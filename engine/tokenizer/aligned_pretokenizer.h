#pragma once

#include <memory>
#include <vector>

#include "engine/tokenizer/aligned_text.h"
#include "engine/tokenizer/tokenizer_json_node.h"

namespace kvscope::checkpoint {

/// The second stage of an encoder's tokenizer.json: cuts text into the words that the model encodes one by one. Kinds:
/// Sequence, BertPreTokenizer, WhitespaceSplit, Metaspace.
class AlignedPreTokenizer {
 public:
    virtual ~AlignedPreTokenizer() = default;

    /// Appends the parts of `text` to `out`, none of them empty.
    virtual void cut(const AlignedText& text, std::vector<AlignedText>& out) const = 0;
};

/// @throws std::runtime_error for other kinds, by name, and for missing or wrong fields
std::unique_ptr<AlignedPreTokenizer> make_aligned_pre_tokenizer(const JsonNode& node);

}  // namespace kvscope::checkpoint
