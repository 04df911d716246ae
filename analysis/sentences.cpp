#include "analysis/sentences.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "analysis/tables/terminal_text.h"
#include "analysis/tables/utf8.h"

namespace kvscope::analysis {
namespace {

constexpr size_t longest_sentence = 200;  // characters

bool contains_code(std::u32string_view codes, uint32_t code) {
    return codes.find(static_cast<char32_t>(code)) != std::u32string_view::npos;
}

/// Ends a sentence where white space follows: Latin, Armenian, Arabic, Devanagari, Ethiopic, Burmese, Khmer, Tibetan.
bool ends_before_space(uint32_t code) { return contains_code(U".!?…‽։؟۔।॥።፧။៕།", code); }

/// Of scripts that are written without spaces.
bool ends_anyway(uint32_t code) { return contains_code(U"。！？｡．", code); }

bool closes(uint32_t code) { return contains_code(U"\"')]}’”»›」』】）〉》*_", code); }

bool is_space(uint32_t code) { return contains_code(U" \t\r\n\v\f\u0085\u00a0\u2028\u2029\u3000", code); }

bool breaks_line(uint32_t code) { return contains_code(U"\n\r\u0085\u2028\u2029", code); }

/// The character at a byte; of bytes that are none, each counts as one.
Utf8Character character_or_byte(std::string_view text, size_t at) {
    const Utf8Character character = utf8_character(text, at);
    return character.bytes > 0 ? character : Utf8Character{0xfffd, 1};
}

/// Whether the full stop before byte `end` is that of an abbreviation which goes on: a title before a name, a word for
/// a number before one, and those that never end a sentence.
bool is_abbreviation(std::string_view text, size_t end) {
    constexpr std::string_view titles[] = {"Mr", "Mrs", "Ms", "Dr", "Prof", "St", "Sr", "Fr", "Rev", "Gen", "Capt"};
    constexpr std::string_view of_numbers[] = {"No",  "no",  "Nos", "Fig", "Figs", "Eq", "Eqs",
                                               "Sec", "Tab", "Vol", "Ch",  "p",    "pp"};
    constexpr std::string_view going_on[] = {"e.g", "i.e", "vs", "cf", "viz", "approx"};
    const size_t space = text.find_last_of(" \t\r\n([{\"'", end - 1);
    const size_t begin = space == std::string_view::npos ? 0 : space + 1;
    const std::string_view before = text.substr(begin, end - 1 - begin);
    const size_t next = text.find_first_not_of(' ', end);
    if (text[end - 1] != '.' || next == std::string_view::npos) return false;
    const auto is_one_of = [&](const auto& list) {
        return std::find(std::begin(list), std::end(list), before) != std::end(list);
    };
    if (is_one_of(going_on)) return true;
    if (is_one_of(of_numbers)) return text[next] >= '0' && text[next] <= '9';
    // A name begins with a capital, which beyond ASCII no byte tells.
    return is_one_of(titles) && !(text[next] >= 'a' && text[next] <= 'z');
}

/// Bytes at which a sentence or line ends, ascending.
std::vector<size_t> ends_of_sentences(std::string_view text) {
    std::vector<size_t> ends;
    for (size_t at = 0; at < text.size();) {
        const auto [code, bytes] = character_or_byte(text, at);
        at += bytes;
        if (breaks_line(code)) {
            ends.push_back(at);
            continue;
        }
        const bool anyway = ends_anyway(code);
        if (!anyway && !ends_before_space(code)) continue;
        if (code == U'.' && is_abbreviation(text, at)) continue;
        size_t end = at;
        while (end < text.size()) {
            const auto next = character_or_byte(text, end);
            if (!closes(next.code) && !ends_before_space(next.code) && !ends_anyway(next.code)) break;
            end += next.bytes;
        }
        if (anyway || end == text.size() || is_space(character_or_byte(text, end).code)) ends.push_back(end);
        at = end;
    }
    return ends;
}

bool is_blank_text(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
        const auto [code, bytes] = character_or_byte(text, at);
        if (!is_space(code)) return false;
        at += bytes;
    }
    return true;
}

/// How many characters begin in bytes [begin, end).
size_t n_characters(std::string_view text, size_t begin, size_t end) {
    const auto part = text.substr(begin, end - begin);
    return static_cast<size_t>(
        std::count_if(part.begin(), part.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// Whether a token begins a character.
bool begins_character(const TokenTexts& texts, size_t token) {
    const size_t at = texts.begins[token];
    return at < texts.text.size() && (static_cast<unsigned char>(texts.text[at]) & 0xc0) != 0x80;
}

bool begins_word(const TokenTexts& texts, size_t token) {
    return begins_character(texts, token) && is_space(character_or_byte(texts.text, texts.begins[token]).code);
}

/// The first token of the part behind the first one of a span that is too long; behind the span where it is not.
size_t next_part(const TokenTexts& texts, TokenSpan span) {
    const size_t from = texts.begins[span.first];
    size_t before_word = 0, before_character = 0;
    for (size_t token = span.first; token <= span.last; ++token) {
        if (token > span.first && begins_character(texts, token)) before_character = token;
        if (token > span.first && begins_word(texts, token)) before_word = token;
        if (n_characters(texts.text, from, texts.begins[token + 1]) <= longest_sentence) continue;
        if (before_word > 0) return before_word;
        if (before_character > 0) return before_character;
    }
    return span.last + 1;
}

}  // namespace

namespace {

std::string_view text_of(const TokenTexts& texts, TokenSpan span) {
    return std::string_view(texts.text)
        .substr(texts.begins[span.first], texts.begins[span.last + 1] - texts.begins[span.first]);
}

bool is_fragment(const TokenTexts& texts, TokenSpan span, size_t shortest) {
    return terminal_columns(terminal_text(trimmed_text(texts, span), Lines::one)) < shortest;
}

/// Fragments go with the next sentence of their line, and those that end a line with the one before them.
std::vector<TokenSpan> without_fragments(const TokenTexts& texts, const std::vector<TokenSpan>& spans,
                                         size_t shortest) {
    std::vector<TokenSpan> joined;
    bool takes_next = false;
    for (const TokenSpan span : spans) {
        if (takes_next)
            joined.back().last = span.last;
        else
            joined.push_back(span);
        takes_next = is_fragment(texts, joined.back(), shortest) &&
                     text_of(texts, joined.back()).find('\n') == std::string_view::npos;
        if (takes_next || joined.size() < 2 || !is_fragment(texts, joined.back(), shortest)) continue;
        joined[joined.size() - 2].last = joined.back().last;
        joined.pop_back();
    }
    if (takes_next && joined.size() > 1) {
        joined[joined.size() - 2].last = joined.back().last;
        joined.pop_back();
    }
    return joined;
}

}  // namespace

std::vector<TokenSpan> sentences_of(const TokenTexts& texts, size_t n_tokens, size_t shortest) {
    n_tokens = std::min(n_tokens, texts.tokens.size());
    if (n_tokens == 0) return {};
    const std::string_view text = std::string_view(texts.text).substr(0, texts.begins[n_tokens]);
    std::vector<TokenSpan> whole;
    size_t first = 0;
    const auto add = [&](size_t end) {
        if (end == first) return;
        const std::string_view said = text.substr(texts.begins[first], texts.begins[end] - texts.begins[first]);
        if (!whole.empty() && is_blank_text(said))
            whole.back().last = end - 1;
        else
            whole.push_back({first, end - 1});
        first = end;
    };
    for (const size_t end : ends_of_sentences(text)) {
        const auto next = std::lower_bound(texts.begins.begin() + static_cast<std::ptrdiff_t>(first),
                                           texts.begins.begin() + static_cast<std::ptrdiff_t>(n_tokens), end);
        add(static_cast<size_t>(next - texts.begins.begin()));
    }
    add(n_tokens);
    std::vector<TokenSpan> parts;
    for (TokenSpan span : without_fragments(texts, whole, shortest)) {
        while (span.first <= span.last) {
            const size_t next = next_part(texts, span);
            const TokenSpan rest{next, span.last};
            const bool has_fragment = next <= span.last && is_fragment(texts, rest, shortest);
            parts.push_back({span.first, has_fragment ? span.last : next - 1});
            span.first = parts.back().last + 1;
        }
    }
    return parts;
}

std::string trimmed_text(const TokenTexts& texts, TokenSpan span) {
    const std::string_view text = whole_characters(texts, span.first, span.last);
    const size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return std::string(text);
    return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin));
}

}  // namespace kvscope::analysis
