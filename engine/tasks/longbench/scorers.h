#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tasks/longbench/word_cuts.h"

namespace kvscope::engine::longbench {

// LongBench's scores of a prediction (metrics.py), from 0 to 1.

/// Returns the words without case, punctuation and English articles (normalize_answer).
[[nodiscard]] std::vector<std::u32string> normalized_words(std::string_view text);

/// F1 of the words, without case, punctuation and English articles.
[[nodiscard]] double qa_f1(std::string_view prediction, std::string_view answer);

/// ROUGE-L as the package `rouge` 1.0.1 computes it: F1 of the sets of words in the longest common subsequences of all
/// pairs of sentences. The package gives up at about 990 words of two sentences, this function does not.
[[nodiscard]] double rouge_l(std::string_view prediction, std::string_view answer);

/// Shares of the answer's runs of n words, and of its words in rouge_l(), that the prediction contains: recalls of
/// ROUGE-N and ROUGE-L of the package `rouge`. 0 if a text has no sentence.
[[nodiscard]] double rouge_n_recall(std::string_view prediction, std::string_view answer, size_t n);
[[nodiscard]] double rouge_l_recall(std::string_view prediction, std::string_view answer);

/// F1 of the characters of Chinese text, without case, punctuation and white space.
[[nodiscard]] double characters_f1_zh(std::string_view prediction, std::string_view answer);

/// qa_f1() and rouge_l() of Chinese text, whose words `cuts` finds.
[[nodiscard]] double qa_f1_zh(std::string_view prediction, std::string_view answer, const WordCuts& cuts);
[[nodiscard]] double rouge_l_zh(std::string_view prediction, std::string_view answer, const WordCuts& cuts);

/// 1 / n if the answer is one of the n classes that the prediction contains. Classes that are part of the answer do not
/// count, except each that follows such a class, because the original removes from the list over which it iterates.
[[nodiscard]] double classification(std::string_view prediction, std::string_view answer,
                                    std::span<const std::string> classes);

/// Returns the number after the first `label`, such as "Paragraph ".
[[nodiscard]] std::optional<std::string> labelled_number(std::string_view text, std::string_view label);

/// Share of the numbers in the prediction that equal the number after the answer's `label`.
[[nodiscard]] double retrieval(std::string_view prediction, std::string_view answer, std::string_view label);

/// Share of the numbers in the prediction that equal the answer.
[[nodiscard]] double count(std::string_view prediction, std::string_view answer);

/// Similarity of the first line that is no comment to the answer: `ratio` of fuzzywuzzy 0.18 without
/// python-Levenshtein, in whole percent.
[[nodiscard]] double code_similarity(std::string_view prediction, std::string_view answer);

/// Returns the letter that a response to LongBench-v2 chooses (pred.py).
[[nodiscard]] std::optional<char> chosen_letter(std::string_view response);

}  // namespace kvscope::engine::longbench
