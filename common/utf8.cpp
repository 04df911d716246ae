#include "common/utf8.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <stdexcept>

namespace kvscope {
namespace {

/// Returns how many of the first bytes of an invalid text could begin a valid character, or 1 if none could.
size_t bytes_of_incomplete_character(std::string_view text) {
    const int whole = static_cast<unsigned char>(utf8proc_utf8class[static_cast<unsigned char>(text.front())]);
    for (int bytes = whole - 1; bytes > 1; --bytes) {
        std::string completed(text.substr(0, static_cast<size_t>(bytes)));
        completed.resize(static_cast<size_t>(whole), '\x80');
        if (decode_utf8_character(completed, 0).is_valid) return std::min(text.size(), static_cast<size_t>(bytes));
    }
    return 1;
}

}  // namespace

Utf8Character decode_utf8_character(std::string_view text, size_t at) {
    if (at >= text.size()) return {};
    if (const auto byte = static_cast<unsigned char>(text[at]); byte < 0x80) return {byte, 1, true};
    utf8proc_int32_t code = 0;
    const auto bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                        static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    if (bytes <= 0) return {};
    return {static_cast<char32_t>(code), static_cast<size_t>(bytes), true};
}

size_t first_invalid_utf8(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
        const Utf8Character character = decode_utf8_character(text, at);
        if (!character.is_valid) return at;
        at += character.bytes;
    }
    return std::string_view::npos;
}

void require_utf8(std::string_view text) {
    const size_t at = first_invalid_utf8(text);
    if (at == std::string_view::npos) return;
    throw std::invalid_argument(fmt::format(
        "the text is not valid UTF-8: byte {} (0x{:02X}) is not part of a character. Convert the text to UTF-8 first.",
        at, static_cast<unsigned char>(text[at])));
}

std::string utf8_lossy(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size());
    while (!bytes.empty()) {
        const Utf8Character character = decode_utf8_character(bytes, 0);
        const size_t n = character.is_valid ? character.bytes : bytes_of_incomplete_character(bytes);
        out += character.is_valid ? bytes.substr(0, n) : "\uFFFD";
        bytes.remove_prefix(n);
    }
    return out;
}

void append_utf8(std::string& out, char32_t code) {
    utf8proc_uint8_t bytes[4];
    const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
    out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(n));
}

bool is_white_space(char32_t c) {
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace kvscope
