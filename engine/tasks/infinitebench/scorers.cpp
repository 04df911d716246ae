#include "engine/tasks/infinitebench/scorers.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <limits>
#include <optional>
#include <vector>

#include "common/utf8.h"
#include "engine/tasks/longbench/python_text.h"
#include "engine/tasks/longbench/scorers.h"
#include "engine/tasks/rouge/rouge_score.h"

namespace kvscope::engine::infinitebench {
namespace {

using longbench::characters_of;

constexpr std::string_view ascii_digits = "0123456789";
constexpr std::string_view ends_of_words = "\n:\"'.,?!{}";

double as_score(bool is_right) { return is_right ? 1.0 : 0.0; }

std::string with_spaces_for(std::string_view text, std::string_view replaced) {
    std::string result(text);
    std::ranges::replace_if(
        result, [&](char c) { return replaced.find(c) != std::string_view::npos; }, ' ');
    return result;
}

std::string with_single_spaces(std::string text) {
    const auto are_spaces = [](char a, char b) { return a == ' ' && b == ' '; };
    text.erase(std::unique(text.begin(), text.end(), are_spaces), text.end());
    return text;
}

std::vector<std::string> words_in(std::string_view text) {
    std::vector<std::string> words;
    for (const std::u32string& found : longbench::words_of(characters_of(text)))
        words.push_back(longbench::utf8_of(found));
    return words;
}

bool contains(std::span<const std::string> list, std::string_view text) {
    return std::ranges::find(list, text) != list.end();
}

/// Returns the digits without leading zeros, after the sign "-".
std::string canonical_digits(std::string_view digits, bool is_negative) {
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
    if (digits.empty()) return "0";
    return (is_negative ? "-" : "") + std::string(digits);
}

/// Returns the canonical digits of a text that Python's int() reads; nullopt for others. Reads digits 0-9 only.
std::optional<std::string> integer_of(std::string_view text) {
    const bool is_negative = text.starts_with('-');
    if (is_negative || text.starts_with('+')) text.remove_prefix(1);
    std::string digits;
    for (size_t i = 0; i < text.size(); ++i) {
        const bool is_separator = text[i] == '_' && i > 0 && i + 1 < text.size() && text[i - 1] != '_';
        if (!is_separator && ascii_digits.find(text[i]) == std::string_view::npos) return std::nullopt;
        if (!is_separator) digits += text[i];
    }
    return digits.empty() ? std::nullopt : std::optional(canonical_digits(digits, is_negative));
}

std::vector<std::string_view> digits_in(std::string_view text) {
    std::vector<std::string_view> found;
    for (size_t at = text.find_first_of(ascii_digits); at != std::string_view::npos;
         at = text.find_first_of(ascii_digits, at)) {
        const size_t end = std::min(text.find_first_not_of(ascii_digits, at), text.size());
        found.push_back(text.substr(at, end - at));
        at = end;
    }
    return found;
}

/// Returns NaN, which equals no number, if the text does not begin with a number.
double number_of(std::string_view text) {
    double value = std::numeric_limits<double>::quiet_NaN();
    (void)std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

/// Returns the last letter from 'A' to `last` that is a word, in the first line that has such a letter.
std::optional<char> last_letter_of_first_line(std::string_view text, char last) {
    std::optional<char> letter;
    const std::u32string characters = characters_of(text);
    const auto is_word_at = [&](size_t i) {
        return i < characters.size() && longbench::is_word_character(characters[i]);
    };
    for (size_t i = 0; i < characters.size(); ++i) {
        if (characters[i] == U'\n' && letter) break;
        if (characters[i] < U'A' || characters[i] > static_cast<char32_t>(last)) continue;
        if (!is_word_at(i + 1) && (i == 0 || !is_word_at(i - 1))) letter = static_cast<char>(characters[i]);
    }
    return letter;
}

enum class Announced { right, wrong, missing };

/// Whether one of the answers follows the first of the announcements that the text contains, and one more character.
Announced announced(std::string_view text, std::initializer_list<std::string_view> announcements, Answers answers) {
    for (const std::string_view announcement : announcements) {
        const size_t at = text.find(announcement);
        if (at == std::string_view::npos) continue;
        std::string_view rest = text.substr(at + announcement.size());
        if (rest.empty()) return Announced::wrong;
        rest.remove_prefix(decode_utf8_character(rest, 0).bytes);
        const bool is_right =
            std::ranges::any_of(answers, [&](const std::string& answer) { return rest.starts_with(answer); });
        return is_right ? Announced::right : Announced::wrong;
    }
    return Announced::missing;
}

/// Returns the prediction without quotes, hyphens, asterisks and the word "option".
std::string plain_choice(std::string_view prediction) {
    std::string text = with_spaces_for(prediction, "\n`'\"-*");
    for (const std::string_view removed : {"Option", "option"}) longbench::replace_all(text, removed, " ");
    return with_single_spaces(std::move(text));
}

double announced_function(std::string_view text, Answers answers) {
    const std::vector<std::string> letter_first(answers.rbegin(), answers.rend());
    return as_score(announced(text, {"answer is:", "is:", "answer:", "correct option is:"}, letter_first) ==
                    Announced::right);
}

std::u32string upper_case_of(std::string_view text) { return longbench::in_upper_case(characters_of(text)); }

double rouge_l_sum(std::string_view prediction, std::string_view answer) {
    return rouge::rouge_l_sum(prediction, answer, rouge::Stemming::none).f1;
}

double best(double (*score)(std::string_view, std::string_view), std::string_view prediction, Answers answers) {
    double highest = 0;
    for (const std::string& answer : answers) highest = std::max(highest, score(prediction, answer));
    return highest;
}

}  // namespace

double word(std::string_view prediction, Answers answers) {
    return as_score(contains(words_in(with_spaces_for(prediction, ends_of_words)), answers.front()));
}

double first_digits(std::string_view prediction, Answers answers) {
    const auto digits = digits_in(prediction);
    return as_score(!digits.empty() && digits.front() == answers.front());
}

double last_integer(std::string_view prediction, Answers answers) {
    const auto words = words_in(with_spaces_for(prediction, "\n.`'\":"));
    const auto last = words.empty() ? std::nullopt : integer_of(words.back());
    return as_score(last && last == integer_of(answers.front()));
}

double first_number(std::string_view prediction, Answers answers) {
    const auto digits = digits_in(prediction);
    if (digits.empty()) return 0;
    const std::string_view whole = digits.front();
    const char* const end = whole.data() + whole.size();
    const bool has_decimals =
        digits.size() > 1 && digits[1].data() == end + 1 && *end == '.';  // the text continues after `end`
    if (const auto wanted = integer_of(answers.front()))
        return as_score(!has_decimals && canonical_digits(whole, false) == *wanted);
    const std::string_view number(whole.data(), whole.size() + (has_decimals ? 1 + digits[1].size() : 0));
    return as_score(number_of(number) == number_of(answers.front()));
}

double leading_numbers(std::string_view prediction, Answers answers) {
    const auto digits = digits_in(prediction);
    size_t n = 0;
    while (n < std::min(digits.size(), answers.size()) && integer_of(answers[n]) == canonical_digits(digits[n], false))
        ++n;
    return static_cast<double>(n) / static_cast<double>(answers.size());
}

double name(std::string_view prediction, Answers answers) {
    const auto words = longbench::words_of(upper_case_of(with_spaces_for(prediction, ends_of_words)));
    return as_score(std::ranges::find(words, characters_of(answers.front())) != words.end());
}

double name_as_kvpress(std::string_view prediction, Answers answers) {
    const std::u32string text = upper_case_of(longbench::stripped(prediction));
    return as_score(std::ranges::any_of(
        answers, [&](const std::string& answer) { return text.find(upper_case_of(answer)) != std::u32string::npos; }));
}

double function(std::string_view prediction, Answers answers) {
    prediction = longbench::stripped(prediction);
    const std::string& letter = answers.back();
    if (prediction.starts_with(letter + ".") || prediction.starts_with(letter + ":")) return 1;
    return announced_function(plain_choice(prediction), answers);
}

double function_as_kvpress(std::string_view prediction, Answers answers) {
    prediction = longbench::stripped(prediction);
    const auto letter = last_letter_of_first_line(prediction, 'J');
    if (letter && answers.back() == std::string(1, *letter)) return 1;
    const std::string text = plain_choice(prediction);
    if (text.starts_with(answers.back()) || text.starts_with(answers.front())) return 1;
    return announced_function(text, answers);
}

double choice(std::string_view prediction, Answers answers) {
    constexpr std::string_view letters = "ABCD";
    prediction = longbench::stripped(prediction);
    if (prediction.empty()) return 0;
    if (letters.find(prediction.front()) != std::string_view::npos)
        return as_score(contains(answers, prediction.substr(0, 1)));
    if (contains(answers, prediction)) return 1;
    const std::string text = with_single_spaces(with_spaces_for(prediction, "\n\"'.,?!{}"));
    const auto said = announced(text, {"answer is:", "answer:", "answer is", "option is"}, answers);
    if (said != Announced::missing) return as_score(said == Announced::right);
    for (const std::string& found : words_in(text))
        if (letters.find(found) != std::string_view::npos) return as_score(contains(answers, found));
    return 0;
}

double choice_as_kvpress(std::string_view prediction, Answers answers) {
    const auto letter = last_letter_of_first_line(longbench::stripped(prediction), 'D');
    if (letter && contains(answers, std::string(1, *letter))) return 1;
    return choice(prediction, answers);
}

double words_f1(std::string_view prediction, Answers answers) { return best(longbench::qa_f1, prediction, answers); }

double characters_f1(std::string_view prediction, Answers answers) {
    return best(longbench::characters_f1_zh, prediction, answers);
}

double summary(std::string_view prediction, Answers answers) { return best(rouge_l_sum, prediction, answers); }

}  // namespace kvscope::engine::infinitebench
