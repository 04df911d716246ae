#include "engine/tasks/longbench/word_cuts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "engine/common/engine_error.h"
#include "engine/tasks/api/sample_line.h"
#include "engine/tasks/longbench/python_text.h"

namespace kvscope::engine::longbench {
namespace {

// Tags of characters: begin, middle and end of a word, and single. The order is that of their letters in ASCII, by
// which jieba decides between equal probabilities.
enum Tag : size_t { tag_begin, tag_end, tag_middle, tag_single };
constexpr std::string_view letters = "BEMS";
constexpr size_t n_tags = letters.size();

constexpr double impossible = -3.14e100;  // jieba's logarithm of 0
// finalseg/prob_start.py and prob_trans.py
constexpr double start_of[n_tags] = {-0.26268660809250016, impossible, impossible, -1.4652633398537678};
constexpr double transition[n_tags][n_tags] = {{impossible, -0.510825623765990, -0.916290731874155, impossible},
                                               {-0.5897149736854513, impossible, impossible, -0.8085250474669937},
                                               {impossible, -0.33344856811948514, -1.2603623820268226, impossible},
                                               {-0.7211965654669841, impossible, impossible, -0.6658631448798212}};
constexpr std::pair<Tag, Tag> before[n_tags] = {
    {tag_end, tag_single}, {tag_begin, tag_middle}, {tag_begin, tag_middle}, {tag_end, tag_single}};  // of each tag

bool is_chinese(char32_t c) { return c >= 0x4E00 && c <= 0x9FD5; }
bool is_latin_or_digit(char32_t c) {
    return (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z') || (c >= U'0' && c <= U'9');
}
bool is_ascii_digit(char32_t c) { return c >= U'0' && c <= U'9'; }
/// Whether jieba looks for words at this character.
bool is_in_block(char32_t c) {
    return is_chinese(c) || is_latin_or_digit(c) ||
           std::u32string_view(U"+#&._%-").find(c) != std::u32string_view::npos;
}

/// Calls `use` with each longest part of characters that all satisfy `is_in` or all do not.
template <class IsIn, class Use>
void for_each_part(std::u32string_view text, const IsIn& is_in, const Use& use) {
    for (size_t from = 0; from < text.size();) {
        const bool inside = is_in(text[from]);
        size_t to = from;
        while (to < text.size() && is_in(text[to]) == inside) ++to;
        use(text.substr(from, to - from), inside);
        from = to;
    }
}

/// Returns the length of a number or Latin word at `at`, such as "3.5%" or "GDP"; 0 if there is none.
size_t latin_length(std::u32string_view text, size_t at) {
    size_t to = at;
    while (to < text.size() && is_latin_or_digit(text[to])) ++to;
    if (to == at) return 0;
    if (to + 1 < text.size() && text[to] == U'.' && is_ascii_digit(text[to + 1]))
        for (++to; to < text.size() && is_ascii_digit(text[to]);) ++to;
    if (to < text.size() && text[to] == U'%') ++to;
    return to - at;
}

[[noreturn]] void refuse(std::string_view option, std::string_view expected, std::string_view found) {
    throw UsageError(
        fmt::format("--{}: expected {}, found {}: use the files of jieba 0.42.1", option, expected, found));
}

/// Returns the value of four hexadecimal digits; nullopt for other texts.
std::optional<char32_t> code_of_escape(std::string_view text) {
    uint32_t code = 0;
    if (text.size() != 6 || !text.starts_with("\\u")) return std::nullopt;
    const auto read = std::from_chars(text.data() + 2, text.data() + text.size(), code, 16);
    return read.ptr == text.data() + text.size() ? std::optional<char32_t>(code) : std::nullopt;
}

}  // namespace

WordCuts::WordCuts(std::string_view dictionary, std::string_view emissions) {
    int64_t total = 0;
    for_each_line_with_text(dictionary, [&](std::string_view line, int number) {
        line = stripped(line);
        const size_t space = std::min(line.find(' '), line.size());
        const std::string_view rest = line.substr(std::min(space + 1, line.size()));
        int64_t count = 0;
        const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), count);
        if (read.ec != std::errc() || (read.ptr != rest.data() + rest.size() && *read.ptr != ' '))
            refuse("dictionary", fmt::format("a word, a count and a tag in line {}", number), line.substr(0, 60));
        const auto word = characters_of(line.substr(0, space));
        counts_[word] = count;
        total += count;
        for (size_t n = 1; n < word.size(); ++n) counts_.try_emplace(word.substr(0, n), 0);
        return true;
    });
    if (total <= 0) refuse("dictionary", "words with counts", "none");
    log_total_ = std::log(static_cast<double>(total));

    size_t tag = n_tags;
    for (size_t at = emissions.find('\''); at != std::string_view::npos; at = emissions.find('\'', at)) {
        const size_t close = emissions.find('\'', at + 1);
        if (close == std::string_view::npos) break;
        const std::string_view key = emissions.substr(at + 1, close - at - 1);
        at = close + 1;
        if (key.size() == 1 && letters.find(key) != std::string_view::npos) {
            tag = letters.find(key);
            continue;
        }
        const auto code = code_of_escape(key);
        const size_t number = emissions.find_first_not_of(": ", at);
        double value = 0;
        if (!code || tag == n_tags || number == std::string_view::npos ||
            std::from_chars(emissions.data() + number, emissions.data() + emissions.size(), value).ec != std::errc())
            refuse("emissions", "lines such as '\\u4e00': -3.65", key.substr(0, 60));
        emissions_[tag][*code] = value;
    }
    for (size_t i = 0; i < n_tags; ++i)
        if (emissions_[i].empty()) refuse("emissions", fmt::format("probabilities of '{}'", letters[i]), "none");
}

int64_t WordCuts::count_of(std::u32string_view word) const {
    const auto found = counts_.find(word);
    return found == counts_.end() ? 0 : found->second;
}

std::vector<size_t> WordCuts::ends_of_most_likely_words(std::u32string_view block) const {
    std::vector<double> best(block.size() + 1, 0);
    std::vector<size_t> ends(block.size());
    for (size_t from = block.size(); from-- > 0;) {
        best[from] = -std::numeric_limits<double>::infinity();
        ends[from] = from;
        const auto consider = [&](size_t to, int64_t count) {
            const double value = std::log(static_cast<double>(std::max<int64_t>(count, 1))) - log_total_ + best[to];
            if (value < best[from]) return;
            best[from] = value;
            ends[from] = to;
        };
        for (size_t to = from + 1; to <= block.size(); ++to) {
            const auto found = counts_.find(block.substr(from, to - from));
            if (found == counts_.end()) break;
            if (found->second != 0) consider(to, found->second);
        }
        if (ends[from] == from) consider(from + 1, count_of(block.substr(from, 1)));
    }
    return ends;
}

void WordCuts::cut_block(std::u32string_view block, Words& words) const {
    const auto ends = ends_of_most_likely_words(block);
    size_t singles_begin = 0;  // of consecutive characters that are words of their own
    const auto add_singles = [&](size_t to) {
        const auto singles = block.substr(singles_begin, to - singles_begin);
        if (singles.size() > 1 && count_of(singles) == 0)
            cut_unknown(singles, words);
        else
            for (const char32_t character : singles) words.emplace_back(1, character);
    };
    for (size_t from = 0; from < block.size(); from = ends[from]) {
        if (ends[from] == from + 1) continue;
        add_singles(from);
        words.emplace_back(block.substr(from, ends[from] - from));
        singles_begin = ends[from];
    }
    add_singles(block.size());
}

void WordCuts::cut_unknown(std::u32string_view text, Words& words) const {
    for_each_part(text, is_chinese, [&](std::u32string_view part, bool are_chinese) {
        if (are_chinese) return cut_by_tags(part, words);
        size_t others = 0;  // begin of the characters since the last Latin word
        const auto add_others = [&](size_t to) {
            if (others < to) words.emplace_back(part.substr(others, to - others));
        };
        for (size_t at = 0; at < part.size();) {
            const size_t length = latin_length(part, at);
            if (length > 0) {
                add_others(at);
                words.emplace_back(part.substr(at, length));
                others = at + length;
            }
            at += std::max<size_t>(length, 1);
        }
        add_others(part.size());
    });
}

void WordCuts::cut_by_tags(std::u32string_view text, Words& words) const {
    using Row = std::array<double, n_tags>;
    std::vector<std::array<size_t, n_tags>> previous(text.size());
    const auto emission = [&](size_t tag, char32_t character) {
        const auto found = emissions_[tag].find(character);
        return found == emissions_[tag].end() ? impossible : found->second;
    };
    Row row{};
    for (size_t tag = 0; tag < n_tags; ++tag) row[tag] = start_of[tag] + emission(tag, text[0]);
    for (size_t i = 1; i < text.size(); ++i) {
        Row next{};
        for (size_t tag = 0; tag < n_tags; ++tag) {
            const double emitted = emission(tag, text[i]);
            const auto [lower, higher] = before[tag];
            const double by_lower = row[lower] + transition[lower][tag] + emitted;
            const double by_higher = row[higher] + transition[higher][tag] + emitted;
            previous[i][tag] = by_higher >= by_lower ? higher : lower;
            next[tag] = std::max(by_lower, by_higher);
        }
        row = next;
    }
    std::vector<size_t> tags(text.size());
    tags.back() = row[tag_single] >= row[tag_end] ? tag_single : tag_end;
    for (size_t i = text.size() - 1; i > 0; --i) tags[i - 1] = previous[i][tags[i]];
    size_t word_begin = 0, added = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        if (tags[i] == tag_begin) word_begin = i;
        if (tags[i] != tag_end && tags[i] != tag_single) continue;
        const size_t from = tags[i] == tag_single ? i : word_begin;
        words.emplace_back(text.substr(from, i + 1 - from));
        added = i + 1;
    }
    if (added < text.size()) words.emplace_back(text.substr(added));
}

std::vector<std::u32string> WordCuts::words_of(std::u32string_view text) const {
    Words words;
    for_each_part(text, is_in_block, [&](std::u32string_view part, bool is_block) {
        if (is_block) return cut_block(part, words);
        for (size_t at = 0; at < part.size();) {
            const size_t n = part.substr(at).starts_with(U"\r\n") ? 2 : 1;
            words.emplace_back(part.substr(at, n));
            at += n;
        }
    });
    return words;
}

}  // namespace kvscope::engine::longbench
