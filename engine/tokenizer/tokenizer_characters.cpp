#include "engine/tokenizer/tokenizer_characters.h"

#include <utf8proc.h>

#include "common/utf8.h"

namespace kvscope::checkpoint {
namespace {

/// Unicode's \w: alphabetic characters, marks, decimal digits, connectors and joiners.
bool is_word(char32_t c) {
    switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
        case UTF8PROC_CATEGORY_LU:
        case UTF8PROC_CATEGORY_LL:
        case UTF8PROC_CATEGORY_LT:
        case UTF8PROC_CATEGORY_LM:
        case UTF8PROC_CATEGORY_LO:
        case UTF8PROC_CATEGORY_MN:
        case UTF8PROC_CATEGORY_MC:
        case UTF8PROC_CATEGORY_ME:
        case UTF8PROC_CATEGORY_ND:
        case UTF8PROC_CATEGORY_NL:
        case UTF8PROC_CATEGORY_PC:
            return true;
        default:
            break;
    }
    const bool circled_letter = (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
                                (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
    return circled_letter || c == 0x200C || c == 0x200D;
}

}  // namespace

size_t offset_of_previous_character(std::string_view text, size_t end) {
    size_t at = end - 1;
    while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) --at;
    return at;
}

bool ends_with_word(std::string_view text) {
    return !text.empty() && is_word(decode_utf8_character(text, offset_of_previous_character(text, text.size())).code);
}

bool starts_with_word(std::string_view text) { return !text.empty() && is_word(decode_utf8_character(text, 0).code); }

bool has_digit(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
        const Utf8Character step = decode_utf8_character(text, at);
        if (utf8proc_category(static_cast<utf8proc_int32_t>(step.code)) == UTF8PROC_CATEGORY_ND) return true;
        at += step.bytes;
    }
    return false;
}

}  // namespace kvscope::checkpoint
