#pragma once

#include <string>
#include <vector>

namespace kvscope::policies {

/// Settings of a token classifier, which reads the user's text before the model does.
struct TokenClassifierSettings {
    std::string model;         ///< Hugging Face directory of the classifier
    bool first_token = false;  ///< whether a word has the probability of its first token instead of the mean
    bool keep_digits = false;  ///< whether tokens with a digit get probability 1
    std::vector<std::string> force_tokens;  ///< texts whose tokens get probability 1

    [[nodiscard]] bool operator==(const TokenClassifierSettings&) const = default;
};

}  // namespace kvscope::policies
