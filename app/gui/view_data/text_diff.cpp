#include "app/gui/view_data/text_diff.h"

#include <utf8proc.h>

#include "common/utf8.h"

namespace kvscope::gui {
namespace {

constexpr size_t most_cells = size_t{1} << 24;  // limit on the table of common subsequences
constexpr size_t longest_word = 32;             // in characters

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

struct WordCharacter {
    size_t bytes = 1;
    bool is_word = false;
};

WordCharacter word_character_at(std::string_view text, size_t i) {
    if (static_cast<unsigned char>(text[i]) < 0x80) return {};
    const auto [code, bytes, is_valid] = decode_utf8_character(text, i);
    if (!is_valid) return {};
    const bool is_hangul = code >= 0xac00 && code <= 0xd7a3;
    return {bytes, code >= 0x2e80 && code < 0x40000 && code / 0x1000 != 0x1f && !is_hangul &&
                       utf8proc_charwidth(static_cast<utf8proc_int32_t>(code)) == 2};
}

std::string_view at(std::string_view text, const Word& word) { return text.substr(word.begin, word.end - word.begin); }

template <class Alike>
Difference difference_of(size_t n_all, size_t m_all, const Alike& are_alike) {
    Difference out{std::vector<bool>(n_all, false), std::vector<size_t>(n_all + 1, 0), m_all};
    size_t first = 0;
    while (first < n_all && first < m_all && are_alike(first, first)) ++first;
    size_t last = 0;  // number of equal elements at the end
    while (first + last < n_all && first + last < m_all && are_alike(n_all - 1 - last, m_all - 1 - last)) ++last;
    const size_t n = n_all - first - last;
    const size_t m = m_all - first - last;
    size_t own = 0;     // own elements since the last common one
    size_t others = 0;  // reference elements since the last common one
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
    std::vector<uint32_t> common((n + 1) * (m + 1), 0);  // [i][j]: length of the subsequence from elements i and j on
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

}  // namespace

std::vector<Word> split_words(std::string_view text) {
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
    const std::vector<Word> others = split_words(reference);
    return difference_of(words.size(), others.size(),
                         [&](size_t i, size_t j) { return at(text, words[i]) == at(reference, others[j]); });
}

void mark_different_words(std::string_view text, std::vector<Word>& words, std::string_view reference) {
    const std::vector<bool> differs = word_difference(text, words, reference).differs;
    for (size_t i = 0; i < words.size(); ++i) words[i].differs = differs[i];
}

Difference token_difference(std::span<const int32_t> ids, std::span<const int32_t> reference) {
    return difference_of(ids.size(), reference.size(), [&](size_t i, size_t j) { return ids[i] == reference[j]; });
}

}  // namespace kvscope::gui
