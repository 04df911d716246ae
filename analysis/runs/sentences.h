#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/runs/token_texts.h"

namespace kvscope::analysis {

struct TokenSpan {
    size_t first = 0;
    size_t last = 0;  ///< included in the range
    [[nodiscard]] bool operator==(const TokenSpan&) const = default;
};

/// Minimum width, in terminal columns, of a sentence that is ranked separately. "No." and "1." are shorter.
inline constexpr size_t shortest_ranked_sentence = 12;

/// Splits the first `n_tokens` tokens into sentences, which end after . ! ? or similar marks and at line breaks.
/// Sentences of over 200 characters are split between words. A token that spans two sentences belongs to the first one.
[[nodiscard]] std::vector<TokenSpan> sentences_of(const TokenTexts& texts, size_t n_tokens);

/// Returns the sentences that are ranked. Short sentences are joined with a neighbor; control tokens are omitted.
/// @param has_template whether a chat template was used; text before the user's turn is then omitted
[[nodiscard]] std::vector<TokenSpan> split_into_sentences_to_rank(const TokenTexts& texts, size_t n_tokens,
                                                                  bool has_template);

/// Returns the text of a span without surrounding white space.
[[nodiscard]] std::string trimmed_text(const TokenTexts& texts, TokenSpan span);

}  // namespace kvscope::analysis
