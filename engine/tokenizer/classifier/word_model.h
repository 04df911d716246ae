#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/classifier/aligned_text.h"
#include "engine/tokenizer/tokenizer_json_node.h"
#include "engine/tokenizer/tokenizer_limits.h"

namespace kvscope::checkpoint {

struct TextToken {
    int32_t id = -1;
    uint32_t begin = 0, end = 0;
};

/// Model of an encoder's tokenizer.json, which splits a word into tokens as the library `tokenizers` does.
class WordModel {
 public:
    virtual ~WordModel() = default;

    virtual void encode(const AlignedText& word, std::vector<TextToken>& out, TokenizerLimits& limits) const = 0;

    [[nodiscard]] virtual const std::vector<std::string>& spellings() const = 0;

    [[nodiscard]] virtual bool continues_word(int32_t id) const = 0;

    [[nodiscard]] virtual std::string_view name() const = 0;
};

/// WordPiece takes the longest matching token from the left, repeatedly. If no token matches, the word becomes unknown.
[[nodiscard]] std::unique_ptr<WordModel> make_word_piece(const JsonNode& node);

/// Unigram maximizes the sum of log probabilities. Consecutive characters without a token become one unknown token.
[[nodiscard]] std::unique_ptr<WordModel> make_unigram(const JsonNode& node);

}  // namespace kvscope::checkpoint
