#include "engine/tasks/rouge/rouge_score.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "common/split.h"
#include "engine/tasks/longbench/python_text.h"
#include "engine/tasks/rouge/porter_stemmer.h"

namespace kvscope::engine::rouge {
namespace {

using Words = std::vector<std::string>;

Words words_of_text(std::string_view text, Stemming stemming) {
    constexpr size_t longest_without_stem = 3;
    Words words;
    bool is_in_word = false;
    for (const char32_t c : longbench::in_lower_case(longbench::characters_of(text))) {
        const bool is_next = (c >= U'a' && c <= U'z') || (c >= U'0' && c <= U'9');
        if (is_next && !is_in_word) words.emplace_back();
        if (is_next) words.back() += static_cast<char>(c);
        is_in_word = is_next;
    }
    if (stemming == Stemming::porter)
        for (std::string& word : words)
            if (word.size() > longest_without_stem) word = porter_stem(std::move(word));
    return words;
}

RougeScore score_of(size_t n_common, size_t n_predicted, size_t n_expected) {
    if (n_predicted == 0 || n_expected == 0) return {};
    const double precision = static_cast<double>(n_common) / static_cast<double>(n_predicted);
    const double recall = static_cast<double>(n_common) / static_cast<double>(n_expected);
    return {precision, recall, n_common > 0 ? 2 * precision * recall / (precision + recall) : 0};
}

/// Lengths of the longest common subsequences of the first i and the first j words, row by row.
std::vector<int> common_lengths(const Words& expected, const Words& predicted) {
    const size_t width = predicted.size() + 1;
    std::vector<int> lengths((expected.size() + 1) * width);
    for (size_t i = 1; i <= expected.size(); ++i)
        for (size_t j = 1; j < width; ++j)
            lengths[i * width + j] = expected[i - 1] == predicted[j - 1]
                                         ? lengths[(i - 1) * width + j - 1] + 1
                                         : std::max(lengths[(i - 1) * width + j], lengths[i * width + j - 1]);
    return lengths;
}

/// Marks the words of `expected` in a longest common subsequence. Among several, the choice is the package's.
void mark_common_words(const Words& expected, const Words& predicted, std::vector<bool>& is_common) {
    const auto lengths = common_lengths(expected, predicted);
    const size_t width = predicted.size() + 1;
    for (size_t i = expected.size(), j = predicted.size(); i > 0 && j > 0;) {
        if (expected[i - 1] == predicted[j - 1]) {
            is_common[i - 1] = true;
            --i, --j;
        } else if (lengths[i * width + j - 1] > lengths[(i - 1) * width + j]) {
            --j;
        } else {
            --i;
        }
    }
}

struct Lines {
    std::vector<Words> lines;
    std::map<std::string, int> counts;  ///< of the words in all lines
    size_t n_words = 0;
};

Lines lines_of_text(std::string_view text, Stemming stemming) {
    Lines all;
    for (const std::string_view line : split(text, '\n')) {
        all.lines.push_back(words_of_text(line, stemming));
        all.n_words += all.lines.back().size();
        for (const std::string& word : all.lines.back()) ++all.counts[word];
    }
    return all;
}

}  // namespace

RougeScore rouge_l(std::string_view prediction, std::string_view answer, Stemming stemming) {
    const Words expected = words_of_text(answer, stemming), predicted = words_of_text(prediction, stemming);
    const auto n_common = static_cast<size_t>(common_lengths(expected, predicted).back());
    return score_of(n_common, predicted.size(), expected.size());
}

RougeScore rouge_l_sum(std::string_view prediction, std::string_view answer, Stemming stemming) {
    Lines expected = lines_of_text(answer, stemming), predicted = lines_of_text(prediction, stemming);
    size_t n_common = 0;
    for (const Words& line : expected.lines) {
        std::vector<bool> is_common(line.size());
        for (const Words& of_prediction : predicted.lines) mark_common_words(line, of_prediction, is_common);
        for (size_t i = 0; i < line.size(); ++i) {
            if (!is_common[i]) continue;
            int &left = expected.counts[line[i]], &left_predicted = predicted.counts[line[i]];
            if (left == 0 || left_predicted == 0) continue;
            --left, --left_predicted;
            ++n_common;
        }
    }
    return score_of(n_common, predicted.n_words, expected.n_words);
}

}  // namespace kvscope::engine::rouge
