#include "trace/storable_text.h"

#include <cstddef>
#include <ctime>

namespace kvscope::trace {

namespace {

/// Returns the length in bytes of the text's first character, or 0 if the character is invalid (Unicode 15, table 3-7).
std::size_t character_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned first = byte(0);
    if (first < 0x80) return 1;
    std::size_t length = 0;
    unsigned low = 0x80;
    unsigned high = 0xBF;
    if (first >= 0xC2 && first <= 0xDF) {
        length = 2;
    } else if (first >= 0xE0 && first <= 0xEF) {
        length = 3;
        if (first == 0xE0) low = 0xA0;
        if (first == 0xED) high = 0x9F;
    } else if (first >= 0xF0 && first <= 0xF4) {
        length = 4;
        if (first == 0xF0) low = 0x90;
        if (first == 0xF4) high = 0x8F;
    }
    if (length == 0 || text.size() < length) return 0;
    if (byte(1) < low || byte(1) > high) return 0;
    for (std::size_t i = 2; i < length; ++i) {
        if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
    }
    return length;
}

}  // namespace

std::string storable_text(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const std::size_t length = character_length(text);
        if (length == 0) {
            out += "\uFFFD";
        } else if (text[0] == '\0') {
            out += "\u2400";
        } else {
            out += text.substr(0, length);
        }
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return out;
}

std::string quoted_text(std::string_view text) {
    constexpr std::size_t most = 60;
    std::string out = "\"";
    for (const char c : storable_text(text.substr(0, most))) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20)
            out += std::string("\xE2\x90") + static_cast<char>(0x80 + byte);  // U+2400 to U+241F
        else
            out += byte == 0x7F ? std::string("\u2421") : std::string(1, c);
    }
    return out + (text.size() > most ? " …\"" : "\"");
}

std::string utc_text(std::time_t time) {
    std::tm parts{};
    gmtime_r(&time, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

}  // namespace kvscope::trace
