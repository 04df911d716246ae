#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kvscope::engine::mathematics {

/// Returns the number after the first "#### ", without commas, as GSM8K's code does (dataset.py).
[[nodiscard]] std::optional<std::string> number_after_hashes(std::string_view text);

/// Returns the content of the last \boxed{…}, as MATH's code does (last_boxed_only_string and remove_boxed). Braces may
/// nest. Returns nullopt for \fbox{…}, for white space before the brace, and if the last box has no end.
[[nodiscard]] std::optional<std::string> boxed_answer(std::string_view text);

/// Whether two answers in LaTeX are equal after MATH's normalization (math_equivalence.py), which for example removes
/// units and writes a/b as \frac{a}{b}.
[[nodiscard]] bool are_equivalent(std::string_view a, std::string_view b);

/// Returns the text from the first "boxed{" to the next brace }, as kvpress does for MATH-500; nullopt without
/// "boxed{".
[[nodiscard]] std::optional<std::string_view> first_boxed_of_kvpress(std::string_view text);

/// Returns the text from the last "boxed{", or from the beginning, to the next brace }, as kvpress does for AIME.
[[nodiscard]] std::string_view last_boxed_of_kvpress(std::string_view text);

}  // namespace kvscope::engine::mathematics
