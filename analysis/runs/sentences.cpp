#include "analysis/runs/sentences.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "analysis/tables/terminal_text.h"
#include "common/utf8.h"

namespace kvscope::analysis {
namespace {

constexpr size_t longest_sentence = 200;  // in characters

bool contains_code(std::u32string_view codes, uint32_t code) {
    return codes.find(static_cast<char32_t>(code)) != std::u32string_view::npos;
}

/// Whether a mark ends a sentence before white space, in Latin and seven other scripts.
bool ends_before_space(uint32_t code) { return contains_code(U".!?…‽։؟۔।॥።፧။៕།", code); }

/// Whether a mark ends a sentence in a script without spaces.
bool ends_anyway(uint32_t code) { return contains_code(U"。！？｡．", code); }

bool closes(uint32_t code) { return contains_code(U"\"')]}’”»›」』】）〉》*_", code); }

bool is_space(uint32_t code) { return contains_code(U" \t\r\n\v\f\u0085\u00a0\u2028\u2029\u3000", code); }

bool breaks_line(uint32_t code) { return contains_code(U"\n\r\u0085\u2028\u2029", code); }

/// Whether the period before byte `end` belongs to an abbreviation within a sentence, as a title before a name does.
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
    // A name begins with a capital letter. Letters outside ASCII count as capitals, because their case is not checked.
    return is_one_of(titles) && !(text[next] >= 'a' && text[next] <= 'z');
}

std::vector<size_t> ends_of_sentences(std::string_view text) {
    std::vector<size_t> ends;
    for (size_t at = 0; at < text.size();) {
        const auto [code, bytes, is_valid] = decode_utf8_character(text, at);
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
            const auto next = decode_utf8_character(text, end);
            if (!closes(next.code) && !ends_before_space(next.code) && !ends_anyway(next.code)) break;
            end += next.bytes;
        }
        if (anyway || end == text.size() || is_space(decode_utf8_character(text, end).code)) ends.push_back(end);
        at = end;
    }
    return ends;
}

bool is_blank_text(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
        const auto [code, bytes, is_valid] = decode_utf8_character(text, at);
        if (!is_space(code)) return false;
        at += bytes;
    }
    return true;
}

size_t n_characters(std::string_view text, size_t begin, size_t end) {
    const auto part = text.substr(begin, end - begin);
    return static_cast<size_t>(
        std::count_if(part.begin(), part.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

bool begins_character(const TokenTexts& texts, size_t token) {
    const size_t at = texts.begins[token];
    return at < texts.text.size() && (static_cast<unsigned char>(texts.text[at]) & 0xc0) != 0x80;
}

bool begins_word(const TokenTexts& texts, size_t token) {
    return begins_character(texts, token) && is_space(decode_utf8_character(texts.text, texts.begins[token]).code);
}

/// Returns the first token of the next part if the span is too long, otherwise the token after the span.
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

bool is_short(const std::string& text) {
    return terminal_display_width(terminal_text(text, Lines::one)) < shortest_ranked_sentence;
}

bool is_fragment(const TokenTexts& texts, TokenSpan span) { return is_short(trimmed_text(texts, span)); }

/// Joins fragments with the next sentence of their line, or with the preceding sentence at the end of a line.
std::vector<TokenSpan> without_fragments(const TokenTexts& texts, const std::vector<TokenSpan>& spans) {
    std::vector<TokenSpan> joined;
    bool takes_next = false;
    for (const TokenSpan span : spans) {
        if (takes_next)
            joined.back().last = span.last;
        else
            joined.push_back(span);
        takes_next =
            is_fragment(texts, joined.back()) && text_of(texts, joined.back()).find('\n') == std::string_view::npos;
        if (takes_next || joined.size() < 2 || !is_fragment(texts, joined.back())) continue;
        joined[joined.size() - 2].last = joined.back().last;
        joined.pop_back();
    }
    if (takes_next && joined.size() > 1) {
        joined[joined.size() - 2].last = joined.back().last;
        joined.pop_back();
    }
    return joined;
}

std::vector<TokenSpan> whole_sentences(const TokenTexts& texts, size_t n_tokens) {
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
    return whole;
}

/// Adds a span, split if it is too long. @param may_end_short whether the last part may be a fragment
void add_parts(std::vector<TokenSpan>& parts, const TokenTexts& texts, TokenSpan span, bool may_end_short) {
    while (span.first <= span.last) {
        const size_t next = next_part(texts, span);
        const bool leaves_fragment = !may_end_short && next <= span.last && is_fragment(texts, {next, span.last});
        parts.push_back({span.first, leaves_fragment ? span.last : next - 1});
        span.first = parts.back().last + 1;
    }
}

/// Whether a token looks like a control token: "<|im_end|>", "</s>", "[INST]". Traces do not mark control tokens.
bool is_control(std::string_view token) {
    const auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
    const auto is_letter = [&](char c) { return is_capital(c) || (c >= 'a' && c <= 'z'); };
    const auto stands_in_brackets = [&](char c) { return is_capital(c) || c == '_' || c == '/'; };
    if (token.size() < 3 || token.find_first_of(" \t\r\n") != std::string_view::npos) return false;
    const std::string_view within = token.substr(1, token.size() - 2);
    if (token.front() == '<' && token.back() == '>') return std::any_of(within.begin(), within.end(), is_letter);
    return token.front() == '[' && token.back() == ']' && std::all_of(within.begin(), within.end(), stands_in_brackets);
}

/// Returns the end of a sentence before its final control tokens and the role names between these tokens.
size_t end_before_control_tokens(const TokenTexts& texts, TokenSpan span) {
    size_t end = span.last + 1;
    for (size_t token = end; token > span.first; --token) {
        const size_t at = token - 1;
        if (!is_control(texts.tokens[at])) continue;
        const bool follows_control = at > span.first && is_control(texts.tokens[at - 1]);
        const TokenSpan between{token, end - 1};
        const bool is_blank = token == end || is_blank_text(text_of(texts, between));
        if (!is_blank && !(follows_control && is_fragment(texts, between))) break;
        end = at;
    }
    return end;
}

/// Removes control tokens from both ends of a sentence. In the result, `first` > `last` if no other tokens remain.
TokenSpan between_control_tokens(const TokenTexts& texts, TokenSpan span) {
    for (size_t token = span.first; token <= span.last; ++token) {
        if (is_control(texts.tokens[token]))
            span.first = token + 1;
        else if (!is_blank_text(text_of(texts, {token, token})))
            break;
    }
    if (span.first <= span.last) span.last = end_before_control_tokens(texts, span) - 1;
    return span;
}

/// Whether a span is a line of a chat template: a control token and few other words, such as the role.
bool is_header(const TokenTexts& texts, TokenSpan span) {
    if (between_control_tokens(texts, span).first == span.first) return false;
    std::string words;
    for (size_t token = span.first; token <= span.last; ++token)
        if (!is_control(texts.tokens[token])) words += text_of(texts, {token, token});
    const size_t begin = std::min(words.find_first_not_of(" \t\r\n"), words.size());
    return is_short(words.substr(begin, words.find_last_not_of(" \t\r\n") + 1 - begin));
}

bool names_user(std::string_view header) {
    return header.find("user") != std::string_view::npos || header.find("User") != std::string_view::npos ||
           header.find("USER") != std::string_view::npos;
}

}  // namespace

std::vector<TokenSpan> sentences_of(const TokenTexts& texts, size_t n_tokens) {
    std::vector<TokenSpan> parts;
    for (const TokenSpan span : whole_sentences(texts, n_tokens)) add_parts(parts, texts, span, true);
    return parts;
}

std::vector<TokenSpan> split_into_sentences_to_rank(const TokenTexts& texts, size_t n_tokens, bool has_template) {
    std::vector<std::vector<TokenSpan>> between_headers(1);
    bool is_before_user = has_template;
    for (const TokenSpan span : whole_sentences(texts, n_tokens)) {
        if (!is_header(texts, span)) {
            between_headers.back().push_back(between_control_tokens(texts, span));
            continue;
        }
        if (is_before_user && names_user(text_of(texts, span))) {
            between_headers.clear();
            is_before_user = false;
        }
        between_headers.emplace_back();
    }
    std::vector<TokenSpan> parts;
    for (const auto& spans : between_headers)
        for (const TokenSpan span : without_fragments(texts, spans)) add_parts(parts, texts, span, false);
    return parts;
}

std::string trimmed_text(const TokenTexts& texts, TokenSpan span) {
    const std::string_view text = whole_characters_of_tokens(texts, span.first, span.last);
    const size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return std::string(text);
    return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin));
}

}  // namespace kvscope::analysis
