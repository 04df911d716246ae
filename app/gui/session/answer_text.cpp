#include "app/gui/session/answer_text.h"

#include <utf8proc.h>

#include <algorithm>

#include "analysis/tables/utf8.h"

namespace kvscope::gui {
namespace {

constexpr size_t most_cells = size_t{1} << 24;  // of the table of common subsequences
constexpr size_t longest_word = 32;             // characters
constexpr size_t farthest_piece = 16;           // bytes a token between known ones may have

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/// A character that lines may break beside.
struct WordCharacter {
    size_t bytes = 1;
    bool is_word = false;
};

WordCharacter word_character_at(std::string_view text, size_t i) {
    if (static_cast<unsigned char>(text[i]) < 0x80) return {};
    const auto [code, bytes] = analysis::utf8_character(text, i);
    if (bytes == 0) return {};
    const bool is_hangul = code >= 0xac00 && code <= 0xd7a3;
    return {bytes, code >= 0x2e80 && code < 0x40000 && code / 0x1000 != 0x1f && !is_hangul &&
                       utf8proc_charwidth(static_cast<utf8proc_int32_t>(code)) == 2};
}

std::string_view at(std::string_view text, const Word& word) { return text.substr(word.begin, word.end - word.begin); }

/// Of n things and m others.
template <class Alike>
Difference difference_of(size_t n_all, size_t m_all, const Alike& are_alike) {
    Difference out{std::vector<bool>(n_all, false), std::vector<size_t>(n_all + 1, 0)};
    size_t first = 0;
    while (first < n_all && first < m_all && are_alike(first, first)) ++first;
    size_t last = 0;  // alike at the end
    while (first + last < n_all && first + last < m_all && are_alike(n_all - 1 - last, m_all - 1 - last)) ++last;
    const size_t n = n_all - first - last;
    const size_t m = m_all - first - last;
    size_t own = 0;     // since what both have
    size_t others = 0;  // of the reference, since then
    const auto both = [&](size_t i) {
        if (others > own) out.left_out[first + i - own] = others - own;
        own = others = 0;
    };
    const auto own_alone = [&](size_t i) {
        out.differs[first + i] = true;
        ++own;
    };
    if (n * m > most_cells) {
        for (size_t i = 0; i < n; ++i) own_alone(i);
        others = m;
        both(n);
        return out;
    }
    const auto alike = [&](size_t i, size_t j) { return are_alike(first + i, first + j); };
    std::vector<uint32_t> common((n + 1) * (m + 1), 0);  // [i][j]: of the things from i and j on
    const auto cell = [&](size_t i, size_t j) -> uint32_t& { return common[i * (m + 1) + j]; };
    for (size_t i = n; i-- > 0;) {
        for (size_t j = m; j-- > 0;)
            cell(i, j) = alike(i, j) ? cell(i + 1, j + 1) + 1 : std::max(cell(i + 1, j), cell(i, j + 1));
    }
    for (size_t i = 0, j = 0; i < n || j < m;) {
        if (i < n && j < m && alike(i, j)) {
            both(i);
            ++i;
            ++j;
        } else if (j == m || (i < n && cell(i + 1, j) >= cell(i, j + 1))) {
            own_alone(i);
            ++i;
        } else {
            ++others;
            ++j;
        }
    }
    both(n);
    return out;
}

/// Where the words of a text begin that have a blank before them, the blank included; 0 is the first.
std::vector<size_t> blank_starts(std::string_view text) {
    std::vector<size_t> starts{0};
    for (size_t i = 1; i < text.size(); ++i) {
        if (is_blank(text[i]) && !is_blank(text[i - 1])) starts.push_back(i);
    }
    return starts;
}

/// Divides bytes [begin, end) into n parts of whole characters.
void divide(std::string_view text, size_t begin, size_t end, size_t n, std::vector<StepPlace>& places) {
    const auto border = [&](size_t i) {
        size_t byte = begin + (end - begin) * i / n;
        while (byte < end && (static_cast<unsigned char>(text[byte]) & 0xc0) == 0x80) ++byte;
        return byte;
    };
    for (size_t i = 0; i < n; ++i) places.push_back({border(i), border(i + 1)});
}

/// Places of n unknown tokens in bytes [begin, end): by words, where each has a token; the longest have more.
std::vector<StepPlace> share_out(std::string_view text, size_t begin, size_t end, size_t n) {
    std::vector<StepPlace> places;
    std::vector<size_t> starts = blank_starts(text.substr(begin, end - begin));
    if (starts.size() > n || begin == end) {
        divide(text, begin, end, n, places);
        return places;
    }
    starts.push_back(end - begin);
    std::vector<size_t> tokens(starts.size() - 1, 1);
    for (size_t left = n - tokens.size(); left > 0; --left) {
        size_t longest = 0;
        const auto bytes_each = [&](size_t i) {
            return static_cast<double>(starts[i + 1] - starts[i]) / static_cast<double>(tokens[i]);
        };
        for (size_t i = 1; i < tokens.size(); ++i) {
            if (bytes_each(i) > bytes_each(longest)) longest = i;
        }
        ++tokens[longest];
    }
    for (size_t i = 0; i < tokens.size(); ++i)
        divide(text, begin + starts[i], begin + starts[i + 1], tokens[i], places);
    return places;
}

}  // namespace

std::vector<Word> words_of(std::string_view text) {
    std::vector<Word> words;
    size_t i = 0;
    while (i < text.size()) {
        Word word;
        for (; i < text.size() && is_blank(text[i]); ++i) word.line_breaks += text[i] == '\n';
        word.begin = i;
        word.glued = i > 0 && !is_blank(text[i - 1]);
        for (size_t n = 0; i < text.size() && !is_blank(text[i]) && n < longest_word; ++n) {
            const WordCharacter next = word_character_at(text, i);
            if (next.is_word && i > word.begin) break;
            i += next.bytes;
            if (next.is_word) break;
        }
        word.end = i;
        if (word.end > word.begin) words.push_back(word);
    }
    return words;
}

Difference word_difference(std::string_view text, const std::vector<Word>& words, std::string_view reference) {
    const std::vector<Word> others = words_of(reference);
    return difference_of(words.size(), others.size(),
                         [&](size_t i, size_t j) { return at(text, words[i]) == at(reference, others[j]); });
}

void mark_differences(std::string_view text, std::vector<Word>& words, std::string_view reference) {
    const std::vector<bool> differs = word_difference(text, words, reference).differs;
    for (size_t i = 0; i < words.size(); ++i) words[i].differs = differs[i];
}

Difference token_difference(std::span<const int32_t> ids, std::span<const int32_t> reference) {
    return difference_of(ids.size(), reference.size(), [&](size_t i, size_t j) { return ids[i] == reference[j]; });
}

std::vector<StepPlace> place_steps(std::string_view text, std::span<const int32_t> ids,
                                   const std::unordered_map<int32_t, std::string>& pieces) {
    std::vector<StepPlace> places(ids.size());
    size_t done = 0;      // steps that have a place
    size_t position = 0;  // in the text, after them
    const auto place_unknown = [&](size_t last, size_t end) {
        const auto shares = share_out(text, position, end, last - done);
        std::copy(shares.begin(), shares.end(), places.begin() + static_cast<std::ptrdiff_t>(done));
        done = last;
        position = end;
    };
    for (size_t step = 0; step < ids.size(); ++step) {
        const auto known = pieces.find(ids[step]);
        if (known == pieces.end() || known->second.empty()) continue;
        const size_t n_between = step - done;
        const size_t found = text.find(known->second, position + n_between);
        if (found == std::string_view::npos || found - position > n_between * farthest_piece) continue;
        if (step > done) place_unknown(step, found);
        places[step] = {found, found + known->second.size()};
        done = step + 1;
        position = found + known->second.size();
    }
    if (ids.size() > done) place_unknown(ids.size(), text.size());
    return places;
}

}  // namespace kvscope::gui
