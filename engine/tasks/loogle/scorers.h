#pragma once

#include <cstddef>
#include <string_view>

#include "common/json.h"

namespace kvscope::engine::loogle {

// LooGLE's scores of a prediction (automatic_metrics.py), from 0 to 1. An empty prediction counts as "None".

/// BLEU of n-grams of n words only, as sentence_bleu() of NLTK 3.10.4 computes it without smoothing.
[[nodiscard]] double bleu(std::string_view prediction, std::string_view answer, size_t n);

/// Shares of the answer's words, word pairs or longest common words that the prediction contains, as the package rouge
/// 1.0.1 computes them. @param n 1 or 2
[[nodiscard]] double rouge_n(std::string_view prediction, std::string_view answer, size_t n);
[[nodiscard]] double rouge_l(std::string_view prediction, std::string_view answer);

/// Share of the masks that have the expected name, or have a word in common with it. The prediction must be a Python
/// dict; LooGLE's code evaluates any expression. A name that is no text ends LooGLE's code; here, the score is 0.
/// @param names expected, by mask; at least one text
[[nodiscard]] double exact_match(std::string_view prediction, const nlohmann::json& names);
[[nodiscard]] double partial_match(std::string_view prediction, const nlohmann::json& names);

}  // namespace kvscope::engine::loogle
