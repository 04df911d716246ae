#include "engine/tasks/ruler/sentence_splitter.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "common/utf8.h"
#include "engine/common/engine_error.h"

namespace kvscope::engine::ruler {
namespace {

constexpr std::u32string_view closing_quotes = U"\u2018\u2019\u201c\u201d\xab\xbb";
constexpr std::u32string_view never_in_words = U")\";}]*:@'({[?!";
constexpr std::u32string_view never_before_words = U"(\"`{[:;&#*@)}]-,";
constexpr std::u32string_view never_before_sentences = U";:,.!?";
constexpr std::u32string_view closing = U"\"')]}";
constexpr std::string_view number_type = "##number##";

/// Contexts in which a word was seen in the training text, as bits of ortho_context.tab.
enum SpellingContext { upper_at_start = 2, upper_inside = 4, upper_anywhere = 14, lower_at_start = 16, lower = 112 };

bool is_in(std::u32string_view set, char32_t c) { return set.find(c) != std::u32string_view::npos; }
bool ends_words(char32_t c) { return is_in(never_in_words, c) || is_in(closing_quotes, c); }
bool ends_sentences(char32_t c) { return c == '.' || c == '?' || c == '!'; }
utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }
bool is_digit(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }
bool is_upper(char32_t c) { return utf8proc_isupper(static_cast<utf8proc_int32_t>(c)) != 0; }
bool is_lower(char32_t c) { return utf8proc_islower(static_cast<utf8proc_int32_t>(c)) != 0; }
/// Whether a character matches [^\W\d] of the Python package regex, which NLTK uses since version 3.10.
bool is_letter(char32_t c) {
    const auto kind = category(c);
    return (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_ME) || kind == UTF8PROC_CATEGORY_NL ||
           kind == UTF8PROC_CATEGORY_PC;
}

std::string lower_utf8(std::u32string_view text) {
    std::string out;
    for (const char32_t c : text)
        append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
    return out;
}

/// Returns the length of a dash of several characters or of an ellipsis at `at`; 0 if there is none.
size_t length_of_dash_or_ellipsis(std::u32string_view text, size_t at) {
    for (const char32_t c : {U'-', U'.'}) {
        const size_t end = std::min(text.find_first_not_of(c, at), text.size());
        if (end >= at + 2) return end - at;
    }
    size_t pairs = 0;  // ". . ."
    while (text.substr(at + 2 * pairs, 2) == U". ") ++pairs;
    if (at + 2 * pairs >= text.size() || text[at + 2 * pairs] != '.') pairs = pairs > 0 ? pairs - 1 : 0;
    return pairs >= 2 ? 2 * pairs + 1 : 0;
}

bool word_ends_at(std::u32string_view text, size_t at) {
    return at == text.size() || text[at] == ' ' || ends_words(text[at]) || length_of_dash_or_ellipsis(text, at) > 0;
}

/// Splits punctuation from words, but leaves full stops at words.
std::vector<std::u32string_view> words_of(std::u32string_view text) {
    std::vector<std::u32string_view> words;
    for (size_t at = 0; at < text.size();) {
        if (text[at] == ' ') {
            ++at;
            continue;
        }
        size_t length = length_of_dash_or_ellipsis(text, at);
        if (length == 0) {
            length = 1;
            const auto ends = [&](size_t end) {
                return word_ends_at(text, end) || (text[end] == ',' && word_ends_at(text, end + 1));
            };
            while (!is_in(never_before_words, text[at]) && !ends(at + length)) ++length;
        }
        words.push_back(text.substr(at, length));
        at += length;
    }
    return words;
}

bool is_number(std::u32string_view text) {
    if (text.starts_with('-')) text.remove_prefix(1);
    if (text.starts_with('.') || text.starts_with(',')) text.remove_prefix(1);
    return !text.empty() && is_digit(text[0]) &&
           std::ranges::all_of(text, [](char32_t c) { return is_digit(c) || is_in(U",.-", c); });
}

/// A character that may end a sentence, and the text that decides whether it does.
struct PossibleEnd {
    size_t at = 0;
    size_t word_begin = 0;   ///< begin of the word before the character
    size_t context_end = 0;  ///< end of the next character of punctuation or the next word
    size_t next_begin = 0;   ///< begin of the next sentence
};

/// Returns the possible ends; of several at one word, only the last.
std::vector<PossibleEnd> possible_ends(std::u32string_view text) {
    std::vector<PossibleEnd> ends;
    PossibleEnd previous;
    bool has_previous = false;
    for (size_t at = 0; at + 1 < text.size(); ++at) {
        if (!ends_sentences(text[at])) continue;
        PossibleEnd end{.at = at, .next_begin = at + 1};
        end.context_end = at + 2;
        if (text[at + 1] == ' ') {
            end.next_begin = text.find_first_not_of(U' ', at + 1);
            if (end.next_begin == std::u32string_view::npos) break;
            end.context_end = std::min(text.find(U' ', end.next_begin), text.size());
        } else if (!ends_words(text[at + 1])) {
            continue;
        }
        const auto before = text.substr(previous.at, at - previous.at);
        const size_t space = before.rfind(U' ');
        // A space at the first place counts as none, as in NLTK.
        const bool is_new_word = space != std::u32string_view::npos && space > 0;
        end.word_begin = is_new_word ? previous.at + space + 1 : previous.word_begin;
        if (has_previous && previous.at <= end.word_begin) ends.push_back(previous);
        previous = end;
        has_previous = true;
    }
    if (has_previous) ends.push_back(previous);
    return ends;
}

/// Returns the length of the closing quotes and brackets with which a text begins, and of the white space after them.
/// Returns two zeros if they belong to the text.
std::pair<size_t, size_t> closing_at_start(std::u32string_view text) {
    size_t n = 0;
    while (n < text.size() && (is_in(closing, text[n]) || is_in(closing_quotes, text[n]))) ++n;
    const size_t end = std::min(text.find_first_not_of(U' ', n), text.size());
    const bool ends = end > n || n == text.size() || text.substr(n, 2) == U"--";
    return n > 0 && ends ? std::pair{n, end - n} : std::pair<size_t, size_t>{0, 0};
}

[[noreturn]] void refuse(const std::string& name, std::string_view expected, std::string_view found) {
    throw UsageError(
        fmt::format("{}: expected {}, found {}: write the file with `grep \"\" *.t* > {}` in the folder "
                    "punkt_tab/english of NLTK's "
                    "data package punkt_tab",
                    name, expected, found, name));
}

}  // namespace

struct SentenceSplitter::Token {
    std::u32string_view text;
    std::string type;  ///< the text in lower case; number_type for numbers
    bool ends_sentence = false;
    bool is_abbreviation = false;
    bool is_ellipsis = false;

    [[nodiscard]] bool is_initial() const { return text.size() == 2 && text[1] == '.' && is_letter(text[0]); }
    [[nodiscard]] std::string type_without_stop() const {
        return type.size() > 1 && type.ends_with('.') ? type.substr(0, type.size() - 1) : type;
    }
    [[nodiscard]] std::string type_without_end() const { return ends_sentence ? type_without_stop() : type; }
};

SentenceSplitter::SentenceSplitter(std::string_view parameters, const std::string& name) {
    int n_line = 0;
    for (size_t begin = 0; begin < parameters.size();) {
        const size_t end = std::min(parameters.find('\n', begin), parameters.size());
        std::string_view line = parameters.substr(begin, end - begin);
        begin = end + 1;
        ++n_line;
        if (line.ends_with('\r')) line.remove_suffix(1);
        const size_t colon = line.find(':');
        const auto refuse_line = [&](std::string_view expected) {
            refuse(fmt::format("{}:{}", name, n_line), expected, fmt::format("\"{}\"", line));
        };
        if (colon == std::string_view::npos) refuse_line("a line such as \"abbrev_types.txt:dr\"");
        std::string_view file = line.substr(0, colon);
        file.remove_prefix(file.rfind('/') + 1);
        const std::string entry(line.substr(colon + 1));
        if (file == "abbrev_types.txt") {
            abbreviations_.insert(entry);
        } else if (file == "sent_starters.txt") {
            starters_.insert(entry);
        } else if (file == "collocations.tab" || file == "ortho_context.tab") {
            const size_t tab = entry.find('\t');
            if (tab == std::string::npos) refuse_line("two entries, separated by a tab");
            const std::string first = entry.substr(0, tab), second = entry.substr(tab + 1);
            int contexts = 0;
            if (file == "collocations.tab") {
                collocations_.emplace(first, second);
            } else if (std::from_chars(second.data(), second.data() + second.size(), contexts).ec != std::errc()) {
                refuse_line("a number after the tab");
            } else {
                spelling_contexts_[first] = contexts;
            }
        }
    }
    const std::array<std::pair<bool, std::string_view>, 4> files{{{abbreviations_.empty(), "abbrev_types.txt"},
                                                                  {starters_.empty(), "sent_starters.txt"},
                                                                  {collocations_.empty(), "collocations.tab"},
                                                                  {spelling_contexts_.empty(), "ortho_context.tab"}}};
    for (const auto& [is_empty, file] : files)
        if (is_empty) refuse(name, fmt::format("lines that begin with \"{}:\"", file), "none");
}

std::vector<SentenceSplitter::Token> SentenceSplitter::tokens_of(std::u32string_view text) const {
    std::vector<Token> tokens;
    for (const auto word : words_of(text)) {
        Token token{.text = word, .type = is_number(word) ? std::string(number_type) : lower_utf8(word)};
        const bool ends_with_stop = word.ends_with('.');
        if (word.size() == 1 && ends_sentences(word[0])) {
            token.ends_sentence = true;
        } else if (word.ends_with(U"..")) {
            token.is_ellipsis = word.find_first_not_of(U'.') == std::u32string_view::npos;
        } else if (ends_with_stop) {
            const std::string lowered = lower_utf8(word.substr(0, word.size() - 1));
            token.is_abbreviation =
                abbreviations_.contains(lowered) || abbreviations_.contains(lowered.substr(lowered.rfind('-') + 1));
            token.ends_sentence = !token.is_abbreviation;
        }
        tokens.push_back(std::move(token));
    }
    return tokens;
}

int SentenceSplitter::spelling_contexts(const std::string& type) const {
    const auto found = spelling_contexts_.find(type);
    return found == spelling_contexts_.end() ? 0 : found->second;
}

int SentenceSplitter::begins_sentence(const Token& token) const {
    if (token.text.size() == 1 && is_in(never_before_sentences, token.text[0])) return 0;
    const int contexts = spelling_contexts(token.type_without_end());
    if (is_upper(token.text[0]) && (contexts & lower) && !(contexts & upper_inside)) return 1;
    if (is_lower(token.text[0]) && ((contexts & upper_anywhere) || !(contexts & lower_at_start))) return 0;
    return -1;
}

/// Punkt's second pass (section 4 of the paper), which considers the next token.
void SentenceSplitter::reconsider(Token& token, const Token& next) const {
    if (!token.text.ends_with('.')) return;
    const std::string type = token.type_without_stop(), next_type = next.type_without_end();
    const bool is_initial = token.is_initial();
    const auto make_abbreviation = [&] {
        token.ends_sentence = false;
        token.is_abbreviation = true;
    };
    if (collocations_.contains({type, next_type})) {
        make_abbreviation();
        return;
    }
    const int begins = begins_sentence(next);
    if ((token.is_abbreviation || token.is_ellipsis) && !is_initial &&
        (begins == 1 || (is_upper(next.text[0]) && starters_.contains(next_type)))) {
        token.ends_sentence = true;
        return;
    }
    if (!is_initial && type != number_type) return;
    const bool is_name =
        is_initial && begins == -1 && is_upper(next.text[0]) && !(spelling_contexts(next_type) & lower);
    if (begins == 0 || is_name) make_abbreviation();
}

bool SentenceSplitter::contains_end(std::u32string_view text) const {
    auto tokens = tokens_of(text);
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
        reconsider(tokens[i], tokens[i + 1]);
        if (tokens[i].ends_sentence) return true;
    }
    return false;
}

std::vector<std::string> SentenceSplitter::split(std::string_view utf8) const {
    std::u32string text;
    std::vector<size_t> byte_at;
    for (size_t at = 0; at < utf8.size();) {
        const auto character = decode_utf8_character(utf8, at);
        text += character.code;
        byte_at.push_back(at);
        at += character.bytes;
    }
    byte_at.push_back(utf8.size());

    std::vector<std::pair<size_t, size_t>> slices;
    size_t begin = 0;
    for (const PossibleEnd& end : possible_ends(text)) {
        if (!contains_end(std::u32string_view(text).substr(end.word_begin, end.context_end - end.word_begin))) continue;
        slices.emplace_back(begin, end.at + 1);
        begin = end.next_begin;
    }
    slices.emplace_back(begin, text.find_last_not_of(U' ') + 1);

    std::vector<std::string> sentences;
    const auto add = [&](size_t from, size_t to) {
        sentences.emplace_back(utf8.substr(byte_at[from], byte_at[to] - byte_at[from]));
    };
    size_t moved = 0;  // characters at the start of the next slice that belong to the sentence before it
    for (size_t i = 0; i < slices.size(); ++i) {
        const auto [first, end] = slices[i];
        const size_t start = first + moved;
        moved = 0;
        if (i + 1 < slices.size()) {
            const auto [next, next_end] = slices[i + 1];
            const auto [n_closing, n_spaces] =
                closing_at_start(std::u32string_view(text).substr(next, next_end > next ? next_end - next : 0));
            if (n_closing > 0) {
                add(start, next + n_closing);
                moved = n_closing + n_spaces;
                continue;
            }
        }
        if (start < end) add(start, end);
    }
    return sentences;
}

}  // namespace kvscope::engine::ruler
