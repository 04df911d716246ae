#include "engine/tasks/infinitebench/rouge_lsum.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/split.h"
#include "engine/tasks/longbench/python_text.h"

namespace kvscope::engine::infinitebench {
namespace {

using Words = std::vector<std::string>;

Words ascii_words_of(std::string_view line) {
    Words words;
    bool is_in_word = false;
    for (const char32_t c : longbench::in_lower_case(longbench::characters_of(line))) {
        const bool is_next = (c >= U'a' && c <= U'z') || (c >= U'0' && c <= U'9');
        if (is_next && !is_in_word) words.emplace_back();
        if (is_next) words.back() += static_cast<char>(c);
        is_in_word = is_next;
    }
    return words;
}

std::vector<Words> lines_of(std::string_view text) {
    std::vector<Words> lines;
    for (const std::string_view line : split(text, '\n')) lines.push_back(ascii_words_of(line));
    return lines;
}

/// Adds the indices in `reference` of a longest common subsequence. Among several, the choice is the package's.
void add_common_places(const Words& reference, const Words& evaluated, std::set<size_t>& places) {
    const size_t width = evaluated.size() + 1;
    std::vector<int> lengths((reference.size() + 1) * width);
    for (size_t i = 1; i <= reference.size(); ++i)
        for (size_t j = 1; j < width; ++j)
            lengths[i * width + j] = reference[i - 1] == evaluated[j - 1]
                                         ? lengths[(i - 1) * width + j - 1] + 1
                                         : std::max(lengths[(i - 1) * width + j], lengths[i * width + j - 1]);
    for (size_t i = reference.size(), j = evaluated.size(); i > 0 && j > 0;) {
        if (reference[i - 1] == evaluated[j - 1]) {
            places.insert(i - 1);
            --i, --j;
        } else if (lengths[i * width + j - 1] > lengths[(i - 1) * width + j]) {
            --j;
        } else {
            --i;
        }
    }
}

/// Returns the number of words; counts each word.
int count_words(const std::vector<Words>& lines, std::map<std::string, int>& counts) {
    int n = 0;
    for (const Words& words : lines)
        for (const std::string& word : words) ++counts[word], ++n;
    return n;
}

}  // namespace

double rouge_lsum(std::string_view prediction, std::string_view answer) {
    const auto evaluated = lines_of(prediction), reference = lines_of(answer);
    std::map<std::string, int> left_in_evaluated, left_in_reference;
    const int n_evaluated = count_words(evaluated, left_in_evaluated);
    const int n_reference = count_words(reference, left_in_reference);
    int n_common = 0;
    for (const Words& line : reference) {
        std::set<size_t> places;
        for (const Words& other : evaluated) add_common_places(line, other, places);
        for (const size_t place : places) {
            int& left = left_in_evaluated[line[place]];
            int& left_of_reference = left_in_reference[line[place]];
            if (left == 0 || left_of_reference == 0) continue;
            --left, --left_of_reference, ++n_common;
        }
    }
    if (n_common == 0) return 0;
    const double recall = n_common / static_cast<double>(n_reference);
    const double precision = n_common / static_cast<double>(n_evaluated);
    return 2 * precision * recall / (precision + recall);
}

}  // namespace kvscope::engine::infinitebench
