#include "engine/tasks/longbench/python_text.h"

#include <utf8proc.h>

#include <algorithm>

#include "common/utf8.h"

namespace kvscope::engine::longbench {
namespace {

utf8proc_category_t category(char32_t character) { return utf8proc_category(static_cast<utf8proc_int32_t>(character)); }

bool is_cased(char32_t character) {
    const auto is = category(character);
    const bool is_ordinal = character == U'\u00AA' || character == U'\u00BA';  // Unicode: Other_Lowercase
    return is == UTF8PROC_CATEGORY_LU || is == UTF8PROC_CATEGORY_LL || is == UTF8PROC_CATEGORY_LT || is_ordinal;
}

/// Whether the character is inside a word for the rule of the final sigma (Unicode: Case_Ignorable).
bool is_ignored_by_case(char32_t character) {
    const auto is = category(character);
    return is == UTF8PROC_CATEGORY_MN || is == UTF8PROC_CATEGORY_ME || is == UTF8PROC_CATEGORY_CF ||
           is == UTF8PROC_CATEGORY_LM || is == UTF8PROC_CATEGORY_SK ||
           std::u32string_view(U"'.:\u00B7\u2018\u2019\u2024\u2027").find(character) != std::u32string_view::npos;
}

/// Whether the sigma ends a word: a letter precedes it, and none follows.
bool is_final_sigma(std::u32string_view text, size_t at) {
    size_t before = at, after = at + 1;
    while (before > 0 && is_ignored_by_case(text[before - 1])) --before;
    while (after < text.size() && is_ignored_by_case(text[after])) ++after;
    return before > 0 && is_cased(text[before - 1]) && (after == text.size() || !is_cased(text[after]));
}

}  // namespace

bool is_space(char32_t character) { return (character >= 0x1C && character <= 0x1F) || is_white_space(character); }

bool is_digit(char32_t character) { return category(character) == UTF8PROC_CATEGORY_ND; }

std::u32string characters_of(std::string_view utf8) {
    std::u32string characters;
    for (size_t at = 0; at < utf8.size();) {
        const auto character = decode_utf8_character(utf8, at);
        characters += character.code;
        at += character.bytes;
    }
    return characters;
}

std::string utf8_of(std::u32string_view characters) {
    std::string utf8;
    for (const char32_t character : characters) append_utf8(utf8, character);
    return utf8;
}

std::u32string in_lower_case(std::u32string_view text) {
    std::u32string lower;
    for (size_t at = 0; at < text.size(); ++at) {
        if (text[at] == U'\u0130')
            lower += U"i\u0307";  // the only character whose lower case has two characters
        else if (text[at] == U'\u03A3')
            lower += is_final_sigma(text, at) ? U'\u03C2' : U'\u03C3';
        else
            lower += static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(text[at])));
    }
    return lower;
}

std::u32string in_upper_case(std::u32string_view text) {
    std::u32string upper;
    for (const char32_t character : text) {
        if (character == U'\u00DF')
            upper += U"SS";
        else
            upper += static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(character)));
    }
    return upper;
}

bool is_word_character(char32_t character) {
    const auto is = category(character);
    return character == U'_' || is_cased(character) || is == UTF8PROC_CATEGORY_LM || is == UTF8PROC_CATEGORY_LO ||
           is == UTF8PROC_CATEGORY_ND || is == UTF8PROC_CATEGORY_NL || is == UTF8PROC_CATEGORY_NO;
}

std::vector<std::u32string> words_of(std::u32string_view text) {
    std::vector<std::u32string> words;
    for (const auto* at = text.begin(); at != text.end();) {
        const auto* const begin = std::find_if_not(at, text.end(), is_space);
        at = std::find_if(begin, text.end(), is_space);
        if (begin != at) words.emplace_back(begin, at);
    }
    return words;
}

std::string_view without_leading_space(std::string_view utf8) {
    while (!utf8.empty()) {
        const auto character = decode_utf8_character(utf8, 0);
        if (!is_space(character.code)) break;
        utf8.remove_prefix(character.bytes);
    }
    return utf8;
}

std::string_view stripped(std::string_view utf8) {
    utf8 = without_leading_space(utf8);
    size_t end = 0;
    for (size_t at = 0; at < utf8.size();) {
        const auto character = decode_utf8_character(utf8, at);
        at += character.bytes;
        if (!is_space(character.code)) end = at;
    }
    return utf8.substr(0, end);
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
}

std::vector<std::string> numbers_in(std::string_view utf8) {
    std::vector<std::string> numbers;
    bool is_in_number = false;
    for (size_t at = 0; at < utf8.size();) {
        const auto character = decode_utf8_character(utf8, at);
        const bool is_next = is_digit(character.code);
        if (is_next && !is_in_number) numbers.emplace_back();
        if (is_next) numbers.back() += utf8.substr(at, character.bytes);
        is_in_number = is_next;
        at += character.bytes;
    }
    return numbers;
}

std::string_view first_line(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
    return text.substr(0, text.find('\n'));
}

}  // namespace kvscope::engine::longbench
