#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kvscope::engine::infinitebench {

// Scores of a prediction, from 0 to 1, of InfiniteBench (compute_scores.py), or of kvpress where the name says so.

using Answers = std::span<const std::string>;  ///< at least one

/// 1 if the answer is one of the words.
[[nodiscard]] double word(std::string_view prediction, Answers answers);

/// 1 if the answer is the first number of the digits 0-9.
[[nodiscard]] double first_digits(std::string_view prediction, Answers answers);

/// 1 if the last word is the answer, a whole number. Words also end at full stops, quotes, colons and backticks.
[[nodiscard]] double last_integer(std::string_view prediction, Answers answers);

/// 1 if the first whole or decimal number is the answer. InfiniteBench's code stops at a decimal number if the answer
/// is a whole number; here, the score is 0.
[[nodiscard]] double first_number(std::string_view prediction, Answers answers);

/// Share of the answers that equal the numbers at the same places, up to the first that does not. Minus signs do not
/// count.
[[nodiscard]] double leading_numbers(std::string_view prediction, Answers answers);

/// 1 if the first answer is one of the words in upper case.
[[nodiscard]] double name(std::string_view prediction, Answers answers);
/// 1 if the prediction contains one of the answers, in upper case.
[[nodiscard]] double name_as_kvpress(std::string_view prediction, Answers answers);

/// 1 if the prediction names the function or its letter. @param answers the function's name and its letter
[[nodiscard]] double function(std::string_view prediction, Answers answers);
[[nodiscard]] double function_as_kvpress(std::string_view prediction, Answers answers);

/// 1 if the prediction chooses the letter. @param answers the text of the right choice and its letter
[[nodiscard]] double choice(std::string_view prediction, Answers answers);
[[nodiscard]] double choice_as_kvpress(std::string_view prediction, Answers answers);

/// F1 of the words or, in Chinese, of the characters without punctuation and white space. The best over all answers.
[[nodiscard]] double words_f1(std::string_view prediction, Answers answers);
[[nodiscard]] double characters_f1(std::string_view prediction, Answers answers);

/// F1 of rougeLsum; the best over all answers.
[[nodiscard]] double summary(std::string_view prediction, Answers answers);

}  // namespace kvscope::engine::infinitebench
