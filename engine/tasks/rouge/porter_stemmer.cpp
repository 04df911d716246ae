#include "engine/tasks/rouge/porter_stemmer.h"

#include <string_view>
#include <utility>

namespace kvscope::engine::rouge {
namespace {

constexpr std::pair<std::string_view, std::string_view> irregular_words[] = {
    {"sky", "sky"},        {"skies", "sky"},       {"dying", "die"},       {"lying", "lie"},
    {"tying", "tie"},      {"news", "news"},       {"innings", "inning"},  {"inning", "inning"},
    {"outings", "outing"}, {"outing", "outing"},   {"canning", "canning"}, {"cannings", "canning"},
    {"howe", "howe"},      {"proceed", "proceed"}, {"exceed", "exceed"},   {"succeed", "succeed"}};

/// A y is a consonant at the beginning and after a vowel.
bool is_consonant(std::string_view word, size_t at) {
    size_t begin = at;
    while (begin > 0 && word[begin] == 'y') --begin;
    const bool is_vowel = std::string_view("aeiou").find(word[begin]) != std::string_view::npos;
    return is_vowel == ((at - begin) % 2 == 1);
}

/// Returns the number of vowels that a consonant follows.
int measure(std::string_view stem) {
    int n = 0;
    for (size_t i = 1; i < stem.size(); ++i) n += !is_consonant(stem, i - 1) && is_consonant(stem, i) ? 1 : 0;
    return n;
}

bool contains_vowel(std::string_view stem) {
    for (size_t i = 0; i < stem.size(); ++i)
        if (!is_consonant(stem, i)) return true;
    return false;
}

bool ends_with_double_consonant(std::string_view word) {
    return word.size() >= 2 && word.back() == word[word.size() - 2] && is_consonant(word, word.size() - 1);
}

/// Whether the word ends with consonant, vowel and a consonant other than w, x and y, or is a vowel and a consonant.
bool ends_with_short_syllable(std::string_view word) {
    const size_t n = word.size();
    if (n == 2) return !is_consonant(word, 0) && is_consonant(word, 1);
    return n >= 3 && is_consonant(word, n - 3) && !is_consonant(word, n - 2) && is_consonant(word, n - 1) &&
           std::string_view("wxy").find(word.back()) == std::string_view::npos;
}

struct Rule {
    std::string_view suffix, replacement;
};

/// Replaces the first suffix that the word has, if the measure of the rest is above `above`.
template <size_t n>
std::string replaced(std::string word, const Rule (&rules)[n], int above) {
    for (const auto& [suffix, replacement] : rules) {
        if (!word.ends_with(suffix)) continue;
        const std::string_view stem(word.data(), word.size() - suffix.size());
        if (measure(stem) <= above) return word;
        return std::string(stem) + std::string(replacement);
    }
    return word;
}

std::string without_plural(std::string word) {
    if (word.ends_with("ies") && word.size() == 4) return word.substr(0, 3);
    constexpr Rule rules[] = {{"sses", "ss"}, {"ies", "i"}, {"ss", "ss"}, {"s", ""}};
    return replaced(std::move(word), rules, -1);
}

std::string without_past_and_progressive(std::string word) {
    const auto without = [&](size_t n) { return word.substr(0, word.size() - n); };
    if (word.ends_with("ied")) return without(word.size() == 4 ? 1 : 2);
    if (word.ends_with("eed")) return measure(without(3)) > 0 ? without(1) : word;
    std::string stem;
    if (word.ends_with("ed") && contains_vowel(without(2)))
        stem = without(2);
    else if (word.ends_with("ing") && contains_vowel(without(3)))
        stem = without(3);
    else
        return word;
    if (stem.ends_with("at") || stem.ends_with("bl") || stem.ends_with("iz")) return stem + "e";
    if (ends_with_double_consonant(stem)) {
        if (std::string_view("lsz").find(stem.back()) == std::string_view::npos) stem.pop_back();
        return stem;
    }
    return measure(stem) == 1 && ends_with_short_syllable(stem) ? stem + "e" : stem;
}

std::string with_final_i(std::string word) {
    if (word.ends_with("y") && word.size() > 2 && is_consonant(word, word.size() - 2)) word.back() = 'i';
    return word;
}

std::string with_simple_suffix(std::string word) {
    while (word.ends_with("alli") && measure(std::string_view(word).substr(0, word.size() - 4)) > 0)
        word.resize(word.size() - 2);
    if (word.ends_with("logi")) {
        if (measure(std::string_view(word).substr(0, word.size() - 3)) > 0) word.pop_back();
        return word;
    }
    constexpr Rule rules[] = {{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"},   {"anci", "ance"},
                              {"izer", "ize"},    {"bli", "ble"},     {"alli", "al"},     {"entli", "ent"},
                              {"eli", "e"},       {"ousli", "ous"},   {"ization", "ize"}, {"ation", "ate"},
                              {"ator", "ate"},    {"alism", "al"},    {"iveness", "ive"}, {"fulness", "ful"},
                              {"ousness", "ous"}, {"aliti", "al"},    {"iviti", "ive"},   {"biliti", "ble"},
                              {"fulli", "ful"}};
    return replaced(std::move(word), rules, 0);
}

std::string without_derivation(std::string word) {
    constexpr Rule rules[] = {{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"},
                              {"ical", "ic"},  {"ful", ""},   {"ness", ""}};
    return replaced(std::move(word), rules, 0);
}

std::string without_suffix(std::string word) {
    if (word.ends_with("ion")) {
        const std::string stem = word.substr(0, word.size() - 3);
        return measure(stem) > 1 && (stem.back() == 's' || stem.back() == 't') ? stem : word;
    }
    constexpr Rule rules[] = {{"al", ""},   {"ance", ""}, {"ence", ""},  {"er", ""},   {"ic", ""},  {"able", ""},
                              {"ible", ""}, {"ant", ""},  {"ement", ""}, {"ment", ""}, {"ent", ""}, {"ou", ""},
                              {"ism", ""},  {"ate", ""},  {"iti", ""},   {"ous", ""},  {"ive", ""}, {"ize", ""}};
    return replaced(std::move(word), rules, 1);
}

std::string without_final_e_and_l(std::string word) {
    if (word.ends_with("e")) {
        const std::string_view stem(word.data(), word.size() - 1);
        if (measure(stem) > 1 || (measure(stem) == 1 && !ends_with_short_syllable(stem))) word.pop_back();
    }
    if (word.ends_with("ll") && measure(std::string_view(word).substr(0, word.size() - 1)) > 1) word.pop_back();
    return word;
}

}  // namespace

std::string porter_stem(std::string word) {
    for (const auto& [irregular, stem] : irregular_words)
        if (word == irregular) return std::string(stem);
    if (word.size() <= 2) return word;
    word = with_final_i(without_past_and_progressive(without_plural(std::move(word))));
    return without_final_e_and_l(without_suffix(without_derivation(with_simple_suffix(std::move(word)))));
}

}  // namespace kvscope::engine::rouge
