#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/aligned_text.h"
#include "engine/tokenizer/tokenizer_json_node.h"

namespace kvscope::checkpoint {

/// A token of a text and the bytes of the text that it stands for.
struct TextToken {
    int32_t id = -1;
    uint32_t begin = 0, end = 0;
};

/// The third stage of an encoder's tokenizer.json: makes tokens of a word, as the library `tokenizers` does.
class WordModel {
 public:
    virtual ~WordModel() = default;

    /// Appends the tokens of a word, which is not empty.
    virtual void encode(const AlignedText& word, std::vector<TextToken>& out) const = 0;

    /// Tokens as they are spelt, by id.
    virtual const std::vector<std::string>& spellings() const = 0;

    /// Whether a token goes on with the word of the token before it.
    virtual bool continues_word(int32_t id) const = 0;

    virtual std::string_view name() const = 0;
};

/// Word-piece ("WordPiece"): from the left the longest token of the vocabulary each time; a word for which that fails,
/// or that is too long, is unknown as a whole.
/// @throws std::runtime_error for a damaged vocabulary
std::unique_ptr<WordModel> make_word_piece(const JsonNode& node);

/// Unigram ("Unigram"): the tokens with the largest sum of log probabilities; characters of no token are unknown,
/// neighbours together.
/// @throws std::runtime_error for a damaged vocabulary
std::unique_ptr<WordModel> make_unigram(const JsonNode& node);

}  // namespace kvscope::checkpoint
