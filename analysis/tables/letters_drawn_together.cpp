#include "analysis/tables/letters_drawn_together.h"

#include <utf8proc.h>

#include <string_view>

#include "common/utf8.h"

namespace kvscope::analysis {
namespace {

Utf8Character last_character(std::string_view text) {
    for (size_t at = text.size(); at-- > 0;) {
        const Utf8Character last = decode_utf8_character(text, at);
        if (last.is_valid || text.size() - at >= 4) return last;
    }
    return {};
}

}  // namespace

bool joins_neighbours(uint32_t c) {
    if (c < 0x300) return false;
    const bool script = (c >= 0x590 && c <= 0x10ff && !(c >= 0x10a0 && c <= 0x10ff)) ||  // Hebrew … Myanmar
                        (c >= 0x1100 && c <= 0x11ff) || (c >= 0x1700 && c <= 0x18af) ||  // Jamo, Khmer, Mongolian
                        (c >= 0x1900 && c <= 0x1cff) || (c >= 0xa800 && c <= 0xabff) ||  // Limbu … Meetei Mayek
                        (c >= 0xfb1d && c <= 0xfdff) || (c >= 0xfe70 && c <= 0xfefe) ||  // presentation forms
                        (c >= 0x10800 && c <= 0x11fff);
    const bool emoji = (c >= 0x1f1e6 && c <= 0x1f1ff) || (c >= 0x1f300 && c <= 0x1faff) || (c >= 0xfe00 && c <= 0xfe0f);
    if (script || emoji || c == 0x200c || c == 0x200d) return true;
    return is_mark(c);
}

bool is_mark(uint32_t c) {
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
    return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_ME;
}

bool is_drawn_with_next_token(const WholeText& text, size_t token) {
    const size_t border = text.begins[token + 1];
    if (border >= text.text.size() || border == text.begins[token]) return false;
    if (static_cast<unsigned char>(text.text[border]) < 0x80) return false;
    const std::string_view before = whole_characters_of_tokens(text, token, token);
    if (before.data() + before.size() > text.text.data() + border) return true;  // the border is inside a character
    const Utf8Character after = decode_utf8_character(text.text, border);
    if (!after.is_valid || !joins_neighbours(after.code)) return false;
    const Utf8Character last = last_character(before);
    return last.is_valid && (joins_neighbours(last.code) || (is_mark(after.code) && last.code > ' '));
}

bool has_letters_drawn_together(const WholeText& text, size_t token) {
    const std::string_view letters = whole_characters_of_tokens(text, token, token);
    for (size_t at = 0; at < letters.size();) {
        const Utf8Character next = decode_utf8_character(letters, at);
        if (next.bytes > 1 && joins_neighbours(next.code)) return true;
        at += next.bytes;
    }
    return false;
}

}  // namespace kvscope::analysis
