#include "engine/tasks/longbench/scorers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "engine/tasks/longbench/python_text.h"
#include "engine/tasks/longbench/sequence_matcher.h"

namespace kvscope::engine::longbench {
namespace {

constexpr std::u32string_view punctuation = U"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";  // Python: string.punctuation

constexpr std::u32string_view chinese_punctuation =  // metrics.py
    U"！？｡。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃》「」『』【】〔〕〖〗〘〙〚〛〜〝〞"
    U"〟〰〾〿–—‘’‛“”„‟…‧﹏.";

std::u32string normalized_zh(std::u32string_view text) {
    std::u32string kept = in_lower_case(text);
    std::erase_if(kept, [](char32_t c) {
        return punctuation.find(c) != std::u32string_view::npos ||
               chinese_punctuation.find(c) != std::u32string_view::npos;
    });
    std::u32string joined;
    for (const std::u32string& part : words_of(kept)) joined += part;
    return joined;
}

std::vector<std::u32string> normalized_words_zh(std::string_view text, const WordCuts& cuts) {
    std::vector<std::u32string> words;
    for (const std::u32string& word : cuts.words_of(characters_of(text))) {
        std::u32string kept = normalized_zh(word);
        if (!kept.empty()) words.push_back(std::move(kept));
    }
    return words;
}

std::u32string with_spaces(std::string_view text, const WordCuts& cuts) {
    std::u32string spaced;
    for (const std::u32string& word : cuts.words_of(characters_of(text))) {
        if (!spaced.empty()) spaced += U' ';
        spaced += word;
    }
    return spaced;
}

using Sentence = std::vector<std::u32string>;

/// Splits at full stops. A sentence of white space has one empty word.
std::vector<Sentence> sentences_of(std::u32string_view characters) {
    std::vector<Sentence> sentences;
    for (size_t begin = 0; begin <= characters.size();) {
        const size_t end = std::min(characters.find(U'.', begin), characters.size());
        if (end > begin) {
            sentences.push_back(words_of(characters.substr(begin, end - begin)));
            if (sentences.back().empty()) sentences.back().emplace_back();
        }
        begin = end + 1;
    }
    return sentences;
}

std::set<std::u32string> distinct_words(std::span<const Sentence> sentences) {
    std::set<std::u32string> words;
    for (const Sentence& sentence : sentences) words.insert(sentence.begin(), sentence.end());
    return words;
}

/// Adds the words of a longest common subsequence. Among several, the choice is that of the package `rouge`.
void add_common_words(const Sentence& reference, const Sentence& evaluated, std::set<std::u32string>& words) {
    const size_t width = evaluated.size() + 1;
    std::vector<int> lengths((reference.size() + 1) * width);
    for (size_t i = 1; i <= reference.size(); ++i)
        for (size_t j = 1; j < width; ++j)
            lengths[i * width + j] = reference[i - 1] == evaluated[j - 1]
                                         ? lengths[(i - 1) * width + j - 1] + 1
                                         : std::max(lengths[(i - 1) * width + j], lengths[i * width + j - 1]);
    for (size_t i = reference.size(), j = evaluated.size(); i > 0 && j > 0;) {
        if (reference[i - 1] == evaluated[j - 1]) {
            words.insert(reference[i - 1]);
            --i, --j;
        } else if (lengths[(i - 1) * width + j] > lengths[i * width + j - 1]) {
            --i;
        } else {
            --j;
        }
    }
}

double share_equal_to(std::span<const std::string> numbers, std::string_view wanted) {
    if (numbers.empty()) return 0;
    return static_cast<double>(std::ranges::count(numbers, wanted)) / static_cast<double>(numbers.size());
}

std::string without_asterisks(std::string_view text) {
    std::string kept(text);
    std::erase(kept, '*');
    return kept;
}

/// Whether the text contains a character that code comments or Markdown fences have.
bool looks_like_comment(std::string_view line) {
    return line.find('`') != std::string_view::npos || line.find('#') != std::string_view::npos ||
           line.find("//") != std::string_view::npos;
}

}  // namespace

namespace {

double f1(std::span<const std::u32string> predicted, std::span<const std::u32string> expected) {
    std::map<std::u32string, int> left;
    for (const auto& word : expected) ++left[word];
    double n_common = 0;
    for (const auto& word : predicted) {
        const auto found = left.find(word);
        if (found == left.end() || found->second == 0) continue;
        --found->second;
        ++n_common;
    }
    if (n_common == 0) return 0;
    const double precision = n_common / static_cast<double>(predicted.size());
    const double recall = n_common / static_cast<double>(expected.size());
    return 2 * precision * recall / (precision + recall);
}

struct Rouge {
    double recall = 0, precision = 0;
};

Rouge rouge_l_of(std::u32string_view prediction, std::u32string_view answer) {
    const auto evaluated = sentences_of(prediction), reference = sentences_of(answer);
    if (evaluated.empty() || reference.empty()) return {};
    std::set<std::u32string> common;
    for (const Sentence& of_reference : reference)
        for (const Sentence& of_prediction : evaluated) add_common_words(of_reference, of_prediction, common);
    const auto n_common = static_cast<double>(common.size());
    return {n_common / static_cast<double>(distinct_words(reference).size()),
            n_common / static_cast<double>(distinct_words(evaluated).size())};
}

double f1_of(const Rouge& rouge) {
    return 2.0 * ((rouge.precision * rouge.recall) / (rouge.precision + rouge.recall + 1e-8));
}

/// Returns the distinct runs of n words, which may extend over several sentences.
std::set<Sentence> runs_of_words(std::string_view text, size_t n) {
    Sentence words;
    for (const Sentence& sentence : sentences_of(characters_of(text)))
        words.insert(words.end(), sentence.begin(), sentence.end());
    std::set<Sentence> runs;
    for (std::span<const std::u32string> rest(words); rest.size() >= n; rest = rest.subspan(1)) {
        const auto run = rest.first(n);
        runs.emplace(run.begin(), run.end());
    }
    return runs;
}

}  // namespace

std::vector<std::u32string> normalized_words(std::string_view text) {
    std::u32string kept = in_lower_case(characters_of(text));
    std::erase_if(kept, [](char32_t c) { return punctuation.find(c) != std::u32string_view::npos; });
    std::u32string without_articles;
    for (auto at = kept.cbegin(); at != kept.cend();) {
        const auto end = std::find_if_not(at, kept.cend(), is_word_character);
        const std::u32string_view run(at, end);
        if (run == U"a" || run == U"an" || run == U"the")
            without_articles += U' ';
        else
            without_articles += run;
        at = end;
        if (at != kept.cend()) without_articles += *at++;
    }
    return words_of(without_articles);
}

double qa_f1(std::string_view prediction, std::string_view answer) {
    return f1(normalized_words(prediction), normalized_words(answer));
}

double qa_f1_zh(std::string_view prediction, std::string_view answer, const WordCuts& cuts) {
    return f1(normalized_words_zh(prediction, cuts), normalized_words_zh(answer, cuts));
}

double rouge_l(std::string_view prediction, std::string_view answer) {
    return f1_of(rouge_l_of(characters_of(prediction), characters_of(answer)));
}

double rouge_l_recall(std::string_view prediction, std::string_view answer) {
    return rouge_l_of(characters_of(prediction), characters_of(answer)).recall;
}

double rouge_n_recall(std::string_view prediction, std::string_view answer, size_t n) {
    const auto evaluated = runs_of_words(prediction, n), reference = runs_of_words(answer, n);
    if (reference.empty()) return 0;
    const auto n_common =
        std::ranges::count_if(reference, [&](const Sentence& run) { return evaluated.contains(run); });
    return static_cast<double>(n_common) / static_cast<double>(reference.size());
}

double characters_f1_zh(std::string_view prediction, std::string_view answer) {
    const auto normalized = [](std::string_view text) {
        std::vector<std::u32string> characters;
        for (const char32_t c : normalized_zh(characters_of(text))) characters.emplace_back(1, c);
        return characters;
    };
    return f1(normalized(prediction), normalized(answer));
}

double rouge_l_zh(std::string_view prediction, std::string_view answer, const WordCuts& cuts) {
    return f1_of(rouge_l_of(with_spaces(prediction, cuts), with_spaces(answer, cuts)));
}

double classification(std::string_view prediction, std::string_view answer, std::span<const std::string> classes) {
    std::vector<std::string_view> matches;
    for (const std::string& name : classes)
        if (prediction.find(name) != std::string_view::npos) matches.push_back(name);
    for (size_t i = 0; i < matches.size(); ++i) {
        const std::string_view match = matches[i];
        if (match != answer && answer.find(match) != std::string_view::npos)
            matches.erase(std::ranges::find(matches, match));
    }
    if (std::ranges::find(matches, answer) == matches.end()) return 0;
    return 1.0 / static_cast<double>(matches.size());
}

std::optional<std::string> labelled_number(std::string_view text, std::string_view label) {
    for (size_t at = text.find(label); at != std::string_view::npos; at = text.find(label, at + 1)) {
        const std::string_view rest = text.substr(at + label.size());
        const auto numbers = numbers_in(rest);
        if (!numbers.empty() && rest.starts_with(numbers.front())) return numbers.front();
    }
    return std::nullopt;
}

double retrieval(std::string_view prediction, std::string_view answer, std::string_view label) {
    const auto wanted = labelled_number(answer, label);
    return wanted ? share_equal_to(numbers_in(prediction), *wanted) : 0;
}

double count(std::string_view prediction, std::string_view answer) {
    return share_equal_to(numbers_in(prediction), answer);
}

double code_similarity(std::string_view prediction, std::string_view answer) {
    prediction.remove_prefix(std::min(prediction.find_first_not_of('\n'), prediction.size()));
    std::string_view line;
    for (;;) {
        const size_t end = prediction.find('\n');
        const std::string_view next = prediction.substr(0, end);
        if (!looks_like_comment(next)) {
            line = next;
            break;
        }
        if (end == std::string_view::npos) break;
        prediction.remove_prefix(end + 1);
    }
    if (line == answer) return 1;
    if (line.empty() || answer.empty()) return 0;
    // Both Python's round() and nearbyint() round halves to even.
    return std::nearbyint(100 * matched_share(characters_of(line), characters_of(answer))) / 100;
}

std::optional<char> chosen_letter(std::string_view response) {
    constexpr std::string_view phrase = "The correct answer is ";
    const std::string text = without_asterisks(response);
    const auto is_letter = [&](size_t at) { return at < text.size() && text[at] >= 'A' && text[at] <= 'D'; };
    for (const bool in_brackets : {true, false}) {
        for (size_t at = text.find(phrase); at != std::string::npos; at = text.find(phrase, at + 1)) {
            const size_t after = at + phrase.size();
            if (!in_brackets && is_letter(after)) return text[after];
            if (in_brackets && after < text.size() && text[after] == '(' && is_letter(after + 1) &&
                after + 2 < text.size() && text[after + 2] == ')')
                return text[after + 1];
        }
    }
    return std::nullopt;
}

}  // namespace kvscope::engine::longbench
