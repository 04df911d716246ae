#pragma once

#include <string>
#include <vector>

namespace kvscope::policies {

/// Settings for a token classifier, which reads the user's text before the model reads anything.
struct TokenClassification {
    std::string model;                      ///< Hugging Face directory of the classifier
    bool first_token = false;               ///< a word's probability is that of its first token instead of the mean
    bool keep_digits = false;               ///< tokens with a digit get probability 1
    std::vector<std::string> force_tokens;  ///< tokens that occur in these texts get probability 1

    bool operator==(const TokenClassification&) const = default;
};

}  // namespace kvscope::policies
