#include "app/gui/answer_text.h"

#include <utf8proc.h>

#include <algorithm>

#include "analysis/utf8.h"

namespace kvscope::gui {
namespace {

constexpr size_t most_cells = size_t{1} << 24;  // of the table of common subsequences
constexpr size_t longest_word = 32;             // characters
constexpr size_t farthest_piece = 16;           // bytes a token between known ones may have

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/// A character that lines may break beside.
struct Character {
    size_t bytes = 1;
    bool is_word = false;
};

Character character_at(std::string_view text, size_t i) {
    if (static_cast<unsigned char>(text[i]) < 0x80) return {};
    const auto [code, bytes] = analysis::utf8_character(text, i);
    if (bytes == 0) return {};
    const bool is_hangul = code >= 0xac00 && code <= 0xd7a3;
    return {bytes, code >= 0x2e80 && code < 0x40000 && code / 0x1000 != 0x1f && !is_hangul &&
                       utf8proc_charwidth(static_cast<utf8proc_int32_t>(code)) == 2};
}

std::string_view at(std::string_view text, const Word& word) { return text.substr(word.begin, word.end - word.begin); }

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
            const Character next = character_at(text, i);
            if (next.is_word && i > word.begin) break;
            i += next.bytes;
            if (next.is_word) break;
        }
        word.end = i;
        if (word.end > word.begin) words.push_back(word);
    }
    return words;
}

void mark_differences(std::string_view text, std::vector<Word>& words, std::string_view reference) {
    const std::vector<Word> others = words_of(reference);
    size_t first = 0;
    while (first < words.size() && first < others.size() && at(text, words[first]) == at(reference, others[first]))
        ++first;
    for (size_t i = 0; i < words.size(); ++i) words[i].differs = i >= first;
    const size_t n = words.size() - first;
    const size_t m = others.size() - first;
    if (n == 0 || m == 0 || n * m > most_cells) return;
    std::vector<uint32_t> common((n + 1) * (m + 1), 0);  // [i][j]: of the words from i and j on
    const auto cell = [&](size_t i, size_t j) -> uint32_t& { return common[i * (m + 1) + j]; };
    const auto alike = [&](size_t i, size_t j) {
        return at(text, words[first + i]) == at(reference, others[first + j]);
    };
    for (size_t i = n; i-- > 0;) {
        for (size_t j = m; j-- > 0;)
            cell(i, j) = alike(i, j) ? cell(i + 1, j + 1) + 1 : std::max(cell(i + 1, j), cell(i, j + 1));
    }
    for (size_t i = 0, j = 0; i < n && j < m;) {
        if (alike(i, j)) {
            words[first + i].differs = false;
            ++i;
            ++j;
        } else if (cell(i + 1, j) >= cell(i, j + 1)) {
            ++i;
        } else {
            ++j;
        }
    }
}

std::vector<StepPlace> place_steps(std::string_view text, std::span<const int32_t> ids,
                                   const std::unordered_map<int32_t, std::string>& pieces) {
    std::vector<StepPlace> places(ids.size());
    size_t done = 0;      // steps that have a place
    size_t position = 0;  // in the text, after them
    const auto share_out = [&](size_t last, size_t end) {
        const size_t n = last - done;
        for (size_t i = 0; i < n; ++i)
            places[done + i] = {position + (end - position) * i / n, position + (end - position) * (i + 1) / n};
        done = last;
        position = end;
    };
    for (size_t step = 0; step < ids.size(); ++step) {
        const auto known = pieces.find(ids[step]);
        if (known == pieces.end() || known->second.empty()) continue;
        const size_t n_between = step - done;
        const size_t found = text.find(known->second, position + n_between);
        if (found == std::string_view::npos || found - position > n_between * farthest_piece) continue;
        share_out(step, found);
        places[step] = {found, found + known->second.size()};
        done = step + 1;
        position = found + known->second.size();
    }
    share_out(ids.size(), text.size());
    return places;
}

}  // namespace kvscope::gui
