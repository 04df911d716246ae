#pragma once

#include <string_view>

namespace kvscope::engine::rouge {

// ROUGE-L as the package rouge-score 0.1.2 computes it, from 0 to 1. Words are runs of the letters a to z and digits.

struct RougeScore {
    double precision = 0, recall = 0, f1 = 0;
};

enum class Stemming { none, porter };  ///< with `porter`, words of more than three characters are replaced by stems

/// Longest common subsequence of the words of both texts.
[[nodiscard]] RougeScore rouge_l(std::string_view prediction, std::string_view answer, Stemming stemming);

/// `rougeLsum`: for each line of the answer, the union of its longest common subsequences with the prediction's lines.
[[nodiscard]] RougeScore rouge_l_sum(std::string_view prediction, std::string_view answer, Stemming stemming);

}  // namespace kvscope::engine::rouge
