#include "analysis/tables/terminal_text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "common/utf8.h"

namespace kvscope::analysis {
namespace {

constexpr uint32_t picture_of_nul = 0x2400;  // the pictures of the other control characters follow
constexpr std::string_view picture_of_delete = "␡";

/// Whether a character changes the direction of the following text: an embedding, override or isolate.
bool turns_direction(uint32_t code) { return (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069); }

bool is_separator(uint32_t code) { return code == 0x2028 || code == 0x2029; }

void append_shown(uint32_t code, std::string_view as_it_stands, Lines lines, std::string& out) {
    // Text of several lines keeps newlines and tabs, so this branch precedes the replacement of control characters.
    if (lines == Lines::several && (code == '\n' || code == '\t')) {  // NOLINT(bugprone-branch-clone)
        out += as_it_stands;
    } else if (code == '\n') {
        out += ' ';
    } else if (code < 0x20) {
        append_utf8(out, picture_of_nul + code);
    } else if (code == 0x7F) {
        out += picture_of_delete;
    } else if ((code >= 0x80 && code < 0xA0) || turns_direction(code) || is_separator(code)) {
        fmt::format_to(std::back_inserter(out), "⟨U+{:04X}⟩", code);
    } else {
        out += as_it_stands;
    }
}

}  // namespace

std::string terminal_text(std::string_view text, Lines lines) {
    std::string out;
    out.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
        const Utf8Character character = decode_utf8_character(text, at);
        if (character.is_valid)
            append_shown(character.code, text.substr(at, character.bytes), lines, out);
        else
            fmt::format_to(std::back_inserter(out), "⟨{:02X}⟩", static_cast<unsigned char>(text[at]));
        at += character.bytes;
    }
    return out;
}

size_t terminal_display_width(std::string_view text) {
    size_t columns = 0;
    for (size_t at = 0; at < text.size();) {
        const Utf8Character character = decode_utf8_character(text, at);
        columns += static_cast<size_t>(std::max(utf8proc_charwidth(static_cast<utf8proc_int32_t>(character.code)), 0));
        at += character.bytes;
    }
    return columns;
}

}  // namespace kvscope::analysis
