#pragma once

#include <string>
#include <string_view>

namespace kvscope::engine::niah {

/// F1 of the words' stems, from 0 to 1: `rouge1` of the package rouge_score 0.1.2 with its stemmer.
[[nodiscard]] double rouge1(std::string_view prediction, std::string_view reference);

/// Returns the stem of a word of a-z and 0-9: Porter, An algorithm for suffix stripping, Program 14(3), 1980, with the
/// changes of NLTK's `PorterStemmer`.
[[nodiscard]] std::string stem_of(std::string word);

}  // namespace kvscope::engine::niah
