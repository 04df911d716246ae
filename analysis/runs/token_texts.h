#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/tables/token_text.h"

namespace kvscope::analysis {

/// Tokens and their joined text.
struct TokenTexts : WholeText {
    std::vector<std::string> tokens;  ///< as stored in the trace
};

/// Joins tokens of a trace into one text.
[[nodiscard]] TokenTexts join_tokens_into_text(std::vector<std::string> tokens);

/// Returns the first and last token of each non-overlapping match, in order. The case of ASCII letters is ignored.
[[nodiscard]] std::vector<std::pair<int64_t, int64_t>> find_text(const WholeText& texts, std::string_view searched);

/// Returns a token with visible white space.
[[nodiscard]] std::string shown_token(std::string_view token);

}  // namespace kvscope::analysis
