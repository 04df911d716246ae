#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/aligned_text.h"
#include "engine/tokenizer/tokenizer_json_node.h"

namespace kvscope::checkpoint {

/// A token with its bytes in the text.
struct TextToken {
    int32_t id = -1;
    uint32_t begin = 0, end = 0;
};

/// The model of an encoder's tokenizer.json. It splits a word into tokens, as the library `tokenizers` does.
class WordModel {
 public:
    virtual ~WordModel() = default;

    /// Appends the tokens of a non-empty word.
    virtual void encode(const AlignedText& word, std::vector<TextToken>& out) const = 0;

    /// Returns the spellings of tokens by id.
    virtual const std::vector<std::string>& spellings() const = 0;

    /// Whether a token continues the word of the previous token.
    virtual bool continues_word(int32_t id) const = 0;

    virtual std::string_view name() const = 0;
};

/// WordPiece: takes the longest matching token from the left, repeatedly. A word that cannot be split this way, or is
/// too long, becomes one unknown token.
/// @throws std::runtime_error if the vocabulary is damaged
std::unique_ptr<WordModel> make_word_piece(const JsonNode& node);

/// Unigram: chooses the tokens with the largest sum of log probabilities. Consecutive characters without a token form
/// one unknown token.
/// @throws std::runtime_error if the vocabulary is damaged
std::unique_ptr<WordModel> make_unigram(const JsonNode& node);

}  // namespace kvscope::checkpoint
