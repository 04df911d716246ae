#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::engine::longbench {

// Operations on text with the results of Python's `str` and `re`.

[[nodiscard]] std::u32string characters_of(std::string_view utf8);

[[nodiscard]] std::string utf8_of(std::u32string_view characters);

[[nodiscard]] std::u32string in_lower_case(std::u32string_view text);  ///< str.lower()
[[nodiscard]] std::u32string in_upper_case(std::u32string_view text);  ///< str.upper()

/// Whether `\w`, `\s` or `\d` matches the character.
[[nodiscard]] bool is_word_character(char32_t character);
[[nodiscard]] bool is_space(char32_t character);
[[nodiscard]] bool is_digit(char32_t character);

/// Returns the parts between white space: str.split().
[[nodiscard]] std::vector<std::u32string> words_of(std::u32string_view text);

[[nodiscard]] std::string_view stripped(std::string_view utf8);               ///< str.strip()
[[nodiscard]] std::string_view without_leading_space(std::string_view utf8);  ///< str.lstrip()

/// text = text.replace(from, to)
void replace_all(std::string& text, std::string_view from, std::string_view to);

/// Returns the matches of `\d+`, of any script.
[[nodiscard]] std::vector<std::string> numbers_in(std::string_view utf8);

/// Returns the first line that does not begin with a line feed: text.lstrip("\n").split("\n")[0].
[[nodiscard]] std::string_view first_line(std::string_view text);

}  // namespace kvscope::engine::longbench
