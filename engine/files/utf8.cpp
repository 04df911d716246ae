#include "engine/files/utf8.h"

#include <fmt/format.h>

#include <stdexcept>

namespace kvscope::checkpoint {

Utf8Step decode_utf8_character(std::string_view text, size_t at) {
    auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
    const uint8_t lead = byte(at);
    if (lead < 0x80) return {lead, 1, true};

    int continuation = 0;
    // This range of the second byte excludes overlong forms, surrogates and values above U+10FFFF.
    uint8_t low = 0x80, high = 0xBF;
    if (lead >= 0xC2 && lead <= 0xDF) {
        continuation = 1;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
        continuation = 2;
        if (lead == 0xE0) low = 0xA0;
        if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        continuation = 3;
        if (lead == 0xF0) low = 0x90;
        if (lead == 0xF4) high = 0x8F;
    } else {
        return {0xFFFD, 1, false};
    }

    char32_t code_point = lead & (0x3F >> continuation);
    for (int i = 1; i <= continuation; ++i) {
        if (at + i >= text.size() || byte(at + i) < low || byte(at + i) > high) {
            return {0xFFFD, static_cast<uint8_t>(i), false};
        }
        code_point = code_point << 6 | (byte(at + i) & 0x3F);
        low = 0x80;
        high = 0xBF;
    }
    return {code_point, static_cast<uint8_t>(continuation + 1), true};
}

size_t first_invalid_utf8(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
        if (static_cast<uint8_t>(text[at]) < 0x80) {
            ++at;
            continue;
        }
        const Utf8Step step = decode_utf8_character(text, at);
        if (!step.valid) return at;
        at += step.length;
    }
    return std::string_view::npos;
}

void require_utf8(std::string_view text) {
    const size_t at = first_invalid_utf8(text);
    if (at == std::string_view::npos) return;
    throw std::invalid_argument(fmt::format(
        "the text is not valid UTF-8: byte {} (0x{:02X}) is not part of a character. Convert the text to UTF-8 first.",
        at, static_cast<uint8_t>(text[at])));
}

std::string utf8_lossy(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size());
    for (size_t at = 0; at < bytes.size();) {
        const Utf8Step step = decode_utf8_character(bytes, at);
        if (step.valid) {
            out.append(bytes, at, step.length);
        } else {
            out += "\uFFFD";
        }
        at += step.length;
    }
    return out;
}

void append_utf8(std::string& out, char32_t c) {
    if (c < 0x80) {
        out += static_cast<char>(c);
    } else if (c < 0x800) {
        out += static_cast<char>(0xC0 | c >> 6);
        out += static_cast<char>(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        out += static_cast<char>(0xE0 | c >> 12);
        out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
        out += static_cast<char>(0x80 | (c & 0x3F));
    } else {
        out += static_cast<char>(0xF0 | c >> 18);
        out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
        out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
        out += static_cast<char>(0x80 | (c & 0x3F));
    }
}

bool is_white_space(char32_t c) {
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace kvscope::checkpoint
