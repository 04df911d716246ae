#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "engine/tokenizer/tokenizer_json_node.h"
#include "engine/tokenizer/tokenizer_work.h"
#include "engine/tokenizer/traced_text.h"

namespace kvscope::checkpoint {

/// A part of the text being encoded: an added token, or text to be cut and encoded.
struct Piece : TracedView {
    bool at_start = false;  ///< whether the piece starts where the original text starts
    int32_t token = -1;     ///< id of an added token, -1 for text
};

/// Owns the rewritten texts that pieces point into.
class TextArena {
 public:
    /// @throws CheckpointError if all texts together exceed the limit of TokenizerWork
    TracedView keep(TracedText text) {
        TokenizerWork::require_length(bytes_ += text.size());
        return texts_.emplace_back(std::move(text)).view();
    }

 private:
    std::deque<TracedText> texts_;
    size_t bytes_ = 0;
};

/// The pre-tokenizer of a tokenizer.json. It cuts text into words, which the model encodes separately.
class PreTokenizer {
 public:
    virtual ~PreTokenizer() = default;

    /// Appends the non-empty parts of a piece of text to `out`.
    virtual void cut(const Piece& piece, TextArena& arena, std::vector<Piece>& out) const = 0;
};

/// Kinds: Sequence, Split, Digits, ByteLevel, Metaspace. @throws std::runtime_error for others
std::unique_ptr<PreTokenizer> make_pre_tokenizer(const JsonNode& node);

}  // namespace kvscope::checkpoint
