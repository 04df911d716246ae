#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/tables/token_text.h"

namespace kvscope::analysis {

/// Tokens and the text that they are together.
struct TokenTexts : WholeText {
    std::vector<std::string> tokens;  ///< as they stand in the trace
};

/// @param tokens as a trace has them: a byte that is no character alone is written ⟨E2⟩
TokenTexts token_texts(std::vector<std::string> tokens);

/// First and last token of each place, in order, whose text holds what is searched; upper and lower ASCII letters are
/// alike. Places do not overlap.
std::vector<std::pair<int64_t, int64_t>> find_text(const WholeText& texts, std::string_view searched);

/// A token with its white space made visible.
std::string shown_token(std::string_view token);

}  // namespace kvscope::analysis
