#pragma once

#include <string>
#include <vector>

namespace kvscope::policies {

/// What a token classifier is asked about the user's text before the model reads anything.
struct TokenClassification {
    std::string model;                      ///< its Hugging Face directory
    bool first_token = false;               ///< a word's probability is its first token's, not the mean of all
    bool keep_digits = false;               ///< tokens with a digit count as kept for certain
    std::vector<std::string> force_tokens;  ///< texts that are kept for certain wherever they stand

    bool operator==(const TokenClassification&) const = default;
};

}  // namespace kvscope::policies
