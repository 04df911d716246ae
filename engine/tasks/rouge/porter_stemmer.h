#pragma once

#include <string>

namespace kvscope::engine::rouge {

/// Returns the stem of a word of lower-case letters and digits, as `PorterStemmer().stem(word)` of NLTK 3.10.4 does:
/// Porter's algorithm of 1980 with NLTK's extensions.
[[nodiscard]] std::string porter_stem(std::string word);

}  // namespace kvscope::engine::rouge
