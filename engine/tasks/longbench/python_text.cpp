#include "engine/tasks/longbench/python_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

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

struct UpperCase {
    char32_t character;
    std::u32string_view upper;
};

// Unicode: SpecialCasing.txt, without the rules of languages; ordered
// clang-format off
constexpr UpperCase special_upper_case[] = {
    {0x00DF, U"\u0053\u0053"}, {0x0149, U"\u02BC\u004E"}, {0x01F0, U"\u004A\u030C"},
    {0x0390, U"\u0399\u0308\u0301"}, {0x03B0, U"\u03A5\u0308\u0301"}, {0x0587, U"\u0535\u0552"},
    {0x1E96, U"\u0048\u0331"}, {0x1E97, U"\u0054\u0308"}, {0x1E98, U"\u0057\u030A"}, {0x1E99, U"\u0059\u030A"},
    {0x1E9A, U"\u0041\u02BE"}, {0x1F50, U"\u03A5\u0313"}, {0x1F52, U"\u03A5\u0313\u0300"},
    {0x1F54, U"\u03A5\u0313\u0301"}, {0x1F56, U"\u03A5\u0313\u0342"}, {0x1F80, U"\u1F08\u0399"},
    {0x1F81, U"\u1F09\u0399"}, {0x1F82, U"\u1F0A\u0399"}, {0x1F83, U"\u1F0B\u0399"}, {0x1F84, U"\u1F0C\u0399"},
    {0x1F85, U"\u1F0D\u0399"}, {0x1F86, U"\u1F0E\u0399"}, {0x1F87, U"\u1F0F\u0399"}, {0x1F88, U"\u1F08\u0399"},
    {0x1F89, U"\u1F09\u0399"}, {0x1F8A, U"\u1F0A\u0399"}, {0x1F8B, U"\u1F0B\u0399"}, {0x1F8C, U"\u1F0C\u0399"},
    {0x1F8D, U"\u1F0D\u0399"}, {0x1F8E, U"\u1F0E\u0399"}, {0x1F8F, U"\u1F0F\u0399"}, {0x1F90, U"\u1F28\u0399"},
    {0x1F91, U"\u1F29\u0399"}, {0x1F92, U"\u1F2A\u0399"}, {0x1F93, U"\u1F2B\u0399"}, {0x1F94, U"\u1F2C\u0399"},
    {0x1F95, U"\u1F2D\u0399"}, {0x1F96, U"\u1F2E\u0399"}, {0x1F97, U"\u1F2F\u0399"}, {0x1F98, U"\u1F28\u0399"},
    {0x1F99, U"\u1F29\u0399"}, {0x1F9A, U"\u1F2A\u0399"}, {0x1F9B, U"\u1F2B\u0399"}, {0x1F9C, U"\u1F2C\u0399"},
    {0x1F9D, U"\u1F2D\u0399"}, {0x1F9E, U"\u1F2E\u0399"}, {0x1F9F, U"\u1F2F\u0399"}, {0x1FA0, U"\u1F68\u0399"},
    {0x1FA1, U"\u1F69\u0399"}, {0x1FA2, U"\u1F6A\u0399"}, {0x1FA3, U"\u1F6B\u0399"}, {0x1FA4, U"\u1F6C\u0399"},
    {0x1FA5, U"\u1F6D\u0399"}, {0x1FA6, U"\u1F6E\u0399"}, {0x1FA7, U"\u1F6F\u0399"}, {0x1FA8, U"\u1F68\u0399"},
    {0x1FA9, U"\u1F69\u0399"}, {0x1FAA, U"\u1F6A\u0399"}, {0x1FAB, U"\u1F6B\u0399"}, {0x1FAC, U"\u1F6C\u0399"},
    {0x1FAD, U"\u1F6D\u0399"}, {0x1FAE, U"\u1F6E\u0399"}, {0x1FAF, U"\u1F6F\u0399"}, {0x1FB2, U"\u1FBA\u0399"},
    {0x1FB3, U"\u0391\u0399"}, {0x1FB4, U"\u0386\u0399"}, {0x1FB6, U"\u0391\u0342"},
    {0x1FB7, U"\u0391\u0342\u0399"}, {0x1FBC, U"\u0391\u0399"}, {0x1FC2, U"\u1FCA\u0399"},
    {0x1FC3, U"\u0397\u0399"}, {0x1FC4, U"\u0389\u0399"}, {0x1FC6, U"\u0397\u0342"},
    {0x1FC7, U"\u0397\u0342\u0399"}, {0x1FCC, U"\u0397\u0399"}, {0x1FD2, U"\u0399\u0308\u0300"},
    {0x1FD3, U"\u0399\u0308\u0301"}, {0x1FD6, U"\u0399\u0342"}, {0x1FD7, U"\u0399\u0308\u0342"},
    {0x1FE2, U"\u03A5\u0308\u0300"}, {0x1FE3, U"\u03A5\u0308\u0301"}, {0x1FE4, U"\u03A1\u0313"},
    {0x1FE6, U"\u03A5\u0342"}, {0x1FE7, U"\u03A5\u0308\u0342"}, {0x1FF2, U"\u1FFA\u0399"},
    {0x1FF3, U"\u03A9\u0399"}, {0x1FF4, U"\u038F\u0399"}, {0x1FF6, U"\u03A9\u0342"},
    {0x1FF7, U"\u03A9\u0342\u0399"}, {0x1FFC, U"\u03A9\u0399"}, {0xFB00, U"\u0046\u0046"},
    {0xFB01, U"\u0046\u0049"}, {0xFB02, U"\u0046\u004C"}, {0xFB03, U"\u0046\u0046\u0049"},
    {0xFB04, U"\u0046\u0046\u004C"}, {0xFB05, U"\u0053\u0054"}, {0xFB06, U"\u0053\u0054"},
    {0xFB13, U"\u0544\u0546"}, {0xFB14, U"\u0544\u0535"}, {0xFB15, U"\u0544\u053B"}, {0xFB16, U"\u054E\u0546"},
    {0xFB17, U"\u0544\u053D"},
};
// clang-format on

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
        const auto* const special = std::ranges::lower_bound(special_upper_case, character, {}, &UpperCase::character);
        if (special != std::end(special_upper_case) && special->character == character)
            upper += special->upper;
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
