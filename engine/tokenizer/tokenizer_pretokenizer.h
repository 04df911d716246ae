#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/tokenizer_json_node.h"
#include "engine/tokenizer/tokenizer_work.h"

namespace kvscope::checkpoint {

/// A part of the text being encoded: an added token, or text that is still to be cut and encoded.
struct Piece {
    std::string_view text;
    bool at_start = false;  ///< begins where the original text begins
    int32_t token = -1;     ///< id of an added token, -1 for text
};

/// Keeps the rewritten texts that pieces point into.
class TextArena {
 public:
    /// @throws CheckpointError beyond what TokenizerWork allows for all of them
    std::string_view keep(std::string text) {
        TokenizerWork::require_length(bytes_ += text.size());
        return texts_.emplace_back(std::move(text));
    }

 private:
    std::deque<std::string> texts_;
    size_t bytes_ = 0;
};

/// The second stage of a tokenizer.json: cuts text into the words that the model encodes one by one. Kinds: Sequence,
/// Split, Digits, ByteLevel, Metaspace.
class PreTokenizer {
 public:
    virtual ~PreTokenizer() = default;

    /// Appends the parts of `piece` (not empty, not a token) to `out`, none of them empty.
    virtual void cut(const Piece& piece, TextArena& arena, std::vector<Piece>& out) const = 0;
};

/// @throws std::runtime_error for other kinds, by name, and for missing or wrong fields
std::unique_ptr<PreTokenizer> make_pre_tokenizer(const JsonNode& node);

}  // namespace kvscope::checkpoint
