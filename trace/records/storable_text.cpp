#include "trace/records/storable_text.h"

#include <cstddef>

#include "common/utf8.h"

namespace kvscope::trace {

std::string storable_text(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
        const auto [code, bytes, is_valid] = decode_utf8_character(text, at);
        out += !is_valid ? "\uFFFD" : code == 0 ? "\u2400" : text.substr(at, bytes);
        at += bytes;
    }
    return out;
}

std::string quoted_text(std::string_view text) {
    constexpr std::size_t most = 60;
    std::string out = "\"";
    for (const char c : storable_text(text.substr(0, most))) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20)
            append_utf8(out, U'\u2400' + byte);
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
