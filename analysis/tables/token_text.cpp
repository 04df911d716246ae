#include "analysis/tables/token_text.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "common/utf8.h"

namespace kvscope::analysis {
namespace {

constexpr std::string_view escape_begin = "⟨";
constexpr std::string_view escape_end = "⟩";
constexpr size_t escape_size = escape_begin.size() + 2 + escape_end.size();
constexpr size_t longest_character = 4;

/// Returns the byte that an escape such as ⟨E2⟩ stands for.
std::optional<char> escaped_byte(std::string_view token, size_t at) {
    const std::string_view escape = token.substr(at, escape_size);
    if (escape.size() < escape_size || !escape.starts_with(escape_begin) || !escape.ends_with(escape_end)) return {};
    const std::string_view digits = escape.substr(escape_begin.size(), 2);
    unsigned value = 0;
    const auto read = std::from_chars(digits.begin(), digits.end(), value, 16);
    if (read.ptr != digits.end() || value < 0x80) return {};
    return static_cast<char>(value);
}

/// Joins tokens and replaces each escape for which `stays` is false. Returns offset and index of each replaced escape.
std::vector<std::pair<size_t, size_t>> put_together(std::span<const std::string> tokens, const std::vector<bool>& stays,
                                                    WholeText& out) {
    std::vector<std::pair<size_t, size_t>> bytes;  // offset, index of the escape
    size_t n_escapes = 0;
    out.text.clear();
    out.begins.clear();
    for (const auto& token : tokens) {
        out.begins.push_back(out.text.size());
        for (size_t at = 0; at < token.size();) {
            const auto byte = escaped_byte(token, at);
            const size_t number = n_escapes;
            if (byte) ++n_escapes;
            if (byte && !(number < stays.size() && stays[number])) {
                bytes.emplace_back(out.text.size(), number);
                out.text += *byte;
                at += escape_size;
            } else {
                out.text += token[at++];
            }
        }
    }
    out.begins.push_back(out.text.size());
    return bytes;
}

}  // namespace

size_t character_begin(std::string_view text, size_t byte) {
    for (size_t back = 0; back < longest_character && back <= byte; ++back) {
        const Utf8Character character = decode_utf8_character(text, byte - back);
        if (character.is_valid && character.bytes > back) return byte - back;
    }
    return byte;
}

WholeText join_and_decode_tokens(std::span<const std::string> tokens) {
    WholeText out;
    const auto bytes = put_together(tokens, {}, out);
    std::vector<bool> stays;
    for (const auto& [place, number] : bytes) {
        if (decode_utf8_character(out.text, character_begin(out.text, place)).is_valid) continue;
        stays.resize(number + 1, false);
        stays[number] = true;
    }
    if (!stays.empty()) put_together(tokens, stays, out);
    return out;
}

std::string_view whole_characters_of_tokens(const WholeText& texts, size_t first, size_t last) {
    const std::string_view text = texts.text;
    const size_t begin = texts.begins[first];
    const size_t end = texts.begins[last + 1];
    if (begin == end) return text.substr(begin, 0);
    const size_t from = character_begin(text, begin);
    const size_t last_character = character_begin(text, end - 1);
    return text.substr(from, std::max(last_character + decode_utf8_character(text, last_character).bytes, end) - from);
}

std::vector<std::string> tokens_with_whole_characters(const WholeText& whole) {
    std::vector<std::string> read;
    for (size_t token = 0; token + 1 < whole.begins.size(); ++token) {
        size_t at = whole.begins[token];
        const size_t end = whole.begins[token + 1];
        std::string& out = read.emplace_back();
        if (at == end) continue;
        if (const size_t begin = character_begin(whole.text, at); begin < at) {
            out += continuation_mark;
            at = begin + decode_utf8_character(whole.text, begin).bytes;
        }
        while (at < end) {
            const size_t bytes = decode_utf8_character(whole.text, at).bytes;
            out += whole.text.substr(at, bytes);
            at += bytes;
        }
    }
    return read;
}

}  // namespace kvscope::analysis
