#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kvscope::engine::longbench {

/// Cuts Chinese text into words as jieba 0.42.1 does with `cut(text, cut_all=False)`.
class WordCuts {
 public:
    /// @param dictionary content of jieba's dict.txt: "WORD COUNT TAG" per line
    /// @param emissions content of jieba's finalseg/prob_emit.py, for words that the dictionary lacks
    /// @throws UsageError with the option, if a text has another format
    WordCuts(std::string_view dictionary, std::string_view emissions);

    /// Returns all characters of the text, in words. Punctuation and white space are words of one character.
    [[nodiscard]] std::vector<std::u32string> words_of(std::u32string_view text) const;

 private:
    struct Hash {
        using is_transparent = void;
        [[nodiscard]] size_t operator()(std::u32string_view text) const {
            return std::hash<std::u32string_view>()(text);
        }
    };
    using Words = std::vector<std::u32string>;

    [[nodiscard]] int64_t count_of(std::u32string_view word) const;
    [[nodiscard]] std::vector<size_t> ends_of_most_likely_words(std::u32string_view block) const;
    void cut_block(std::u32string_view block, Words& words) const;
    void cut_unknown(std::u32string_view text, Words& words) const;
    void cut_by_tags(std::u32string_view text, Words& words) const;

    /// Counts of words, and 0 for the beginnings of words that are no words.
    std::unordered_map<std::u32string, int64_t, Hash, std::equal_to<>> counts_;
    double log_total_ = 0;
    std::array<std::unordered_map<char32_t, double>, 4> emissions_;  ///< log probabilities, by tag and character
};

}  // namespace kvscope::engine::longbench
