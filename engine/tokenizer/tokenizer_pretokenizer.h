#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "engine/tokenizer/tokenizer_json_node.h"
#include "engine/tokenizer/tokenizer_limits.h"
#include "engine/tokenizer/traced_text.h"

namespace kvscope::checkpoint {

/// An added token, or a part of the text that is still to be cut and encoded.
struct Piece : TracedView {
    bool at_start = false;  ///< whether the piece starts where the original text starts
    int32_t token = -1;     ///< id of an added token, -1 for text
};

/// Owns the rewritten texts to which pieces refer.
class TextArena {
 public:
    explicit TextArena(TokenizerLimits& limits) : limits_(limits) {}

    /// @throws CheckpointError if all texts together exceed the limit
    [[nodiscard]] TracedView keep(TracedText text) {
        limits_.require_length(bytes_ += text.size());
        return texts_.emplace_back(std::move(text)).view();
    }
    [[nodiscard]] TokenizerLimits& limits() const { return limits_; }

 private:
    TokenizerLimits& limits_;
    std::deque<TracedText> texts_;
    size_t bytes_ = 0;
};

/// Pre-tokenizer of a tokenizer.json, which cuts a piece into words and appends them to `out`.
using PreTokenizer = std::function<void(const Piece& piece, TextArena& arena, std::vector<Piece>& out)>;

/// Supports Sequence, Split, Digits, ByteLevel and Metaspace. @throws std::runtime_error for other kinds
[[nodiscard]] PreTokenizer make_pre_tokenizer(const JsonNode& node);

}  // namespace kvscope::checkpoint
