#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/token_texts.h"

namespace kvscope::analysis {

/// Neighbouring tokens.
struct TokenSpan {
    size_t first = 0;
    size_t last = 0;  ///< included
    bool operator==(const TokenSpan&) const = default;
};

/// Columns of a terminal that a sentence fills at least, to be ranked by itself: "No." and "1." do not.
inline constexpr size_t shortest_ranked_sentence = 12;

/// The sentences and lines of the first tokens of a text, each token in one of them, in order. A sentence ends behind
/// . ! ? … and their like in other scripts where white space or the text's end follows, behind 。！？ whatever follows,
/// each with the quotes and brackets that close there, and at line breaks. One that is longer than 200 characters is
/// cut before a word. Blank lines go with what stands before them. A token that reaches across an end is of the
/// sentence in which it begins.
/// @param n_tokens of `texts`, how many; the text ends there
std::vector<TokenSpan> sentences_of(const TokenTexts& texts, size_t n_tokens);

/// The sentences that are ranked. One that is shorter than `shortest_ranked_sentence` goes with the next one of its
/// line, else with the one before it. Control tokens at the ends of a sentence are left out, and so are lines that
/// have little else, such as "<|im_start|>user".
/// @param has_template a chat template wrote the text: what stands before the user's turn is left out, too
std::vector<TokenSpan> ranked_sentences(const TokenTexts& texts, size_t n_tokens, bool has_template);

/// What a span says, without the white space around it.
std::string trimmed_text(const TokenTexts& texts, TokenSpan span);

}  // namespace kvscope::analysis
