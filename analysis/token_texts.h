#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/tables/token_text.h"

namespace kvscope::analysis {

/// Tokens and the text that they are together.
struct TokenTexts : WholeText {
    std::vector<std::string> tokens;  ///< as they stand in the trace
};

/// @param tokens as a trace has them: a byte that is no character alone is written ⟨E2⟩
TokenTexts token_texts(std::vector<std::string> tokens);

/// What tokens first … last say, with the whole of characters that they have only bytes of.
std::string_view whole_characters(const TokenTexts& texts, size_t first, size_t last);

/// A token with its white space made visible.
std::string shown_token(std::string_view token);

}  // namespace kvscope::analysis
