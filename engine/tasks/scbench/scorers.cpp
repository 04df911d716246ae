#include "engine/tasks/scbench/scorers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "engine/tasks/infinitebench/scorers.h"
#include "engine/tasks/longbench/python_text.h"

namespace kvscope::engine::scbench {
namespace {

using longbench::characters_of;

/// InfiniteBench's score, which SCBench's code computes alike.
template <double (*score)(std::string_view, infinitebench::Answers)>
double of_infinitebench(std::string_view prediction, const Labels& labels) {
    return score(prediction, labels.texts);
}

double kv_retrieval(std::string_view prediction, const Labels& labels) {
    return prediction.find(labels.texts.front()) != std::string_view::npos ? 1 : 0;
}

double number_in(std::string_view text) {
    double number = 0;
    (void)std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

double string_match_all(std::string_view prediction, const Labels& labels) {
    const auto lower = longbench::in_lower_case(characters_of(prediction));
    const auto n_found = std::ranges::count_if(labels.texts, [&](const std::string& text) {
        return lower.find(longbench::in_lower_case(characters_of(text))) != std::u32string::npos;
    });
    const double share = static_cast<double>(n_found) / static_cast<double>(labels.texts.size());
    return number_in(fmt::format("{:.2f}", share));  // rounded as by Python's round(share, 2)
}

/// Returns the first match of `\d+\.\d+|\d+`, with the digits 0 to 9 instead of those of other scripts.
std::string first_decimal_number(std::string_view text) {
    const std::u32string characters = characters_of(text);
    const auto is_digit_at = [&](size_t at) { return at < characters.size() && longbench::is_digit(characters[at]); };
    size_t at = 0;
    while (at < characters.size() && !is_digit_at(at)) ++at;
    std::string number;
    for (; at < characters.size(); ++at) {
        if (is_digit_at(at)) {
            char32_t zero = characters[at];  // digits of a script are ordered, in groups of ten
            while (longbench::is_digit(zero - 1)) --zero;
            number += static_cast<char>('0' + (characters[at] - zero) % 10);
        } else if (characters[at] == U'.' && is_digit_at(at + 1) && number.find('.') == std::string::npos) {
            number += '.';
        } else {
            break;
        }
    }
    return number;
}

double math_find(std::string_view prediction, const Labels& labels) {
    const std::string digits = first_decimal_number(prediction);
    if (digits.empty()) return 0;
    const double number = number_in(digits);
    if (labels.number.is_number_float()) return number == labels.number.get<double>() ? 1 : 0;
    constexpr double beyond_whole_numbers = 9.2e18;
    const bool is_equal =
        number < beyond_whole_numbers && static_cast<int64_t>(std::trunc(number)) == labels.number.get<int64_t>();
    return is_equal ? 1 : 0;
}

using Score = double (*)(std::string_view prediction, const Labels& labels);

constexpr std::pair<std::string_view, Score> scores[] = {
    {"kv_retrieval", kv_retrieval},
    {"string_match_all", string_match_all},
    {"longdialogue_qa_eng", of_infinitebench<infinitebench::name_as_kvpress>},
    {"longbook_qa_chn", of_infinitebench<infinitebench::characters_f1>},
    {"longbook_choice_eng", of_infinitebench<infinitebench::choice>},
    {"math_find", math_find},
    {"longbook_sum_eng", of_infinitebench<infinitebench::summary>},
    {"passkey", of_infinitebench<infinitebench::first_digits>},
};

}  // namespace

Scorer scorer_named(std::string_view metric, Labels labels, std::string scored_as) {
    for (const auto& [name, score] : scores)
        if (name == metric)
            return {
                std::string(name),
                [score = score, labels = std::move(labels)](std::string_view prediction, std::span<const std::string>) {
                    return score(prediction, labels);
                },
                std::move(scored_as)};
    throw std::logic_error(fmt::format("SCBench has no metric {}", metric));
}

}  // namespace kvscope::engine::scbench
