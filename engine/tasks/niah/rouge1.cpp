#include "engine/tasks/niah/rouge1.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "common/lower_case.h"

namespace kvscope::engine::niah {
namespace {

constexpr std::pair<std::string_view, std::string_view> irregular_words[] = {
    {"sky", "sky"},       {"skies", "sky"},       {"dying", "die"},       {"lying", "lie"},
    {"tying", "tie"},     {"news", "news"},       {"inning", "inning"},   {"innings", "inning"},
    {"outing", "outing"}, {"outings", "outing"},  {"canning", "canning"}, {"cannings", "canning"},
    {"howe", "howe"},     {"proceed", "proceed"}, {"exceed", "exceed"},   {"succeed", "succeed"}};

using Rule = std::pair<std::string_view, std::string_view>;  ///< a suffix and its replacement

constexpr Rule step_2[] = {{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"},   {"anci", "ance"},
                           {"izer", "ize"},    {"bli", "ble"},     {"alli", "al"},     {"entli", "ent"},
                           {"eli", "e"},       {"ousli", "ous"},   {"ization", "ize"}, {"ation", "ate"},
                           {"ator", "ate"},    {"alism", "al"},    {"iveness", "ive"}, {"fulness", "ful"},
                           {"ousness", "ous"}, {"aliti", "al"},    {"iviti", "ive"},   {"biliti", "ble"},
                           {"fulli", "ful"}};
constexpr Rule step_3[] = {{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"},
                           {"ical", "ic"},  {"ful", ""},   {"ness", ""}};
constexpr Rule step_4[] = {{"al", ""},   {"ance", ""}, {"ence", ""},  {"er", ""},   {"ic", ""},  {"able", ""},
                           {"ible", ""}, {"ant", ""},  {"ement", ""}, {"ment", ""}, {"ent", ""}, {"ou", ""},
                           {"ism", ""},  {"ate", ""},  {"iti", ""},   {"ous", ""},  {"ive", ""}, {"ize", ""}};

bool is_one_of(char letter, std::string_view letters) { return letters.find(letter) != std::string_view::npos; }

bool is_consonant(std::string_view word, size_t i) {
    if (word[i] == 'y') return i == 0 || !is_consonant(word, i - 1);
    return !is_one_of(word[i], "aeiou");
}

bool has_vowel(std::string_view word) {
    for (size_t i = 0; i < word.size(); ++i)
        if (!is_consonant(word, i)) return true;
    return false;
}

/// Returns how often a consonant follows a vowel, m in Porter's paper.
int measure(std::string_view word) {
    int n = 0;
    for (size_t i = 1; i < word.size(); ++i) n += !is_consonant(word, i - 1) && is_consonant(word, i) ? 1 : 0;
    return n;
}

bool ends_in_double_consonant(std::string_view word) {
    const size_t n = word.size();
    return n >= 2 && word[n - 1] == word[n - 2] && is_consonant(word, n - 1);
}

/// Whether the word ends in consonant, vowel and a consonant other than w, x and y, or is a vowel and a consonant.
bool ends_in_short_syllable(std::string_view word) {
    const size_t n = word.size();
    if (n == 2) return !is_consonant(word, 0) && is_consonant(word, 1);
    return n >= 3 && is_consonant(word, n - 3) && !is_consonant(word, n - 2) && is_consonant(word, n - 1) &&
           !is_one_of(word[n - 1], "wxy");
}

std::string without_last(const std::string& word, size_t n) { return word.substr(0, word.size() - n); }

/// Applies the first rule whose suffix the word has, if the measure of the rest is above `least`.
std::string replace_suffix(const std::string& word, std::span<const Rule> rules, int least) {
    for (const auto& [suffix, replacement] : rules) {
        if (!word.ends_with(suffix)) continue;
        std::string rest = without_last(word, suffix.size());
        return measure(rest) > least ? rest.append(replacement) : word;
    }
    return word;
}

std::string without_plural(const std::string& word) {
    if (word.ends_with("ies")) return without_last(word, word.size() == 4 ? 1 : 2);
    if (word.ends_with("sses")) return without_last(word, 2);
    return word.ends_with('s') && !word.ends_with("ss") ? without_last(word, 1) : word;
}

std::string without_ed_and_ing(const std::string& word) {
    if (word.ends_with("ied")) return without_last(word, word.size() == 4 ? 1 : 2);
    if (word.ends_with("eed")) return measure(without_last(word, 3)) > 0 ? without_last(word, 1) : word;
    const size_t n = word.ends_with("ed") ? 2 : word.ends_with("ing") ? 3 : 0;
    if (n == 0 || !has_vowel(without_last(word, n))) return word;
    const std::string rest = without_last(word, n);
    for (const char* suffix : {"at", "bl", "iz"})
        if (rest.ends_with(suffix)) return rest + "e";
    if (ends_in_double_consonant(rest)) return is_one_of(rest.back(), "lsz") ? rest : without_last(rest, 1);
    return measure(rest) == 1 && ends_in_short_syllable(rest) ? rest + "e" : rest;
}

std::string with_i_for_y(std::string word) {
    if (word.size() > 2 && word.ends_with('y') && is_consonant(word, word.size() - 2)) word.back() = 'i';
    return word;
}

std::string with_short_double_suffix(const std::string& word) {
    if (word.ends_with("alli") && measure(without_last(word, 4)) > 0)
        return with_short_double_suffix(without_last(word, 2));
    if (word.ends_with("logi")) return measure(without_last(word, 3)) > 0 ? without_last(word, 1) : word;
    return replace_suffix(word, step_2, 0);
}

std::string without_last_suffix(const std::string& word) {
    if (!word.ends_with("ion")) return replace_suffix(word, step_4, 1);
    const std::string rest = without_last(word, 3);
    return measure(rest) > 1 && is_one_of(rest.back(), "st") ? rest : word;
}

std::string without_last_e_and_l(std::string word) {
    if (word.ends_with('e')) {
        const std::string rest = without_last(word, 1);
        const int m = measure(rest);
        if (m > 1 || (m == 1 && !ends_in_short_syllable(rest))) word = rest;
    }
    return word.ends_with("ll") && measure(without_last(word, 1)) > 1 ? without_last(word, 1) : word;
}

std::map<std::string, int> count_stems(std::string_view text, int& n_words) {
    constexpr size_t longest_unchanged = 3;
    std::map<std::string, int> counts;
    std::string word;
    const auto finish = [&] {
        if (word.empty()) return;
        ++n_words;
        ++counts[word.size() > longest_unchanged ? stem_of(word) : word];
        word.clear();
    };
    for (const char letter : lower_case(text)) {
        const bool is_of_word = (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
        if (is_of_word)
            word += letter;
        else
            finish();
    }
    finish();
    return counts;
}

}  // namespace

std::string stem_of(std::string word) {
    for (const auto& [irregular, stem] : irregular_words)
        if (word == irregular) return std::string(stem);
    if (word.size() <= 2) return word;
    word = with_i_for_y(without_ed_and_ing(without_plural(word)));
    word = replace_suffix(with_short_double_suffix(word), step_3, 0);
    return without_last_e_and_l(without_last_suffix(word));
}

double rouge1(std::string_view prediction, std::string_view reference) {
    int n_predicted = 0, n_wanted = 0, n_common = 0;
    const auto predicted = count_stems(prediction, n_predicted), wanted = count_stems(reference, n_wanted);
    for (const auto& [stem, n] : wanted) {
        const auto found = predicted.find(stem);
        if (found != predicted.end()) n_common += std::min(n, found->second);
    }
    return n_common == 0 ? 0 : 2.0 * n_common / (n_predicted + n_wanted);
}

}  // namespace kvscope::engine::niah
