#include "engine/tasks/helmet/scorers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <stdexcept>

#include "common/utf8.h"
#include "engine/tasks/longbench/python_text.h"
#include "engine/tasks/longbench/scorers.h"
#include "engine/tasks/rouge/rouge_score.h"

namespace kvscope::engine::helmet {
namespace {

using longbench::characters_of;

std::string utf8_of(std::u32string_view characters) {
    std::string text;
    for (const char32_t c : characters) append_utf8(text, c);
    return text;
}

std::u32string normalized(std::string_view text) {
    std::u32string joined;
    for (const std::u32string& word : longbench::normalized_words(text)) {
        if (!joined.empty()) joined += U' ';
        joined += word;
    }
    return joined;
}

double exact_match(std::string_view prediction, std::string_view answer) {
    return normalized(prediction) == normalized(answer) ? 1 : 0;
}

double substring_exact_match(std::string_view prediction, std::string_view answer) {
    return normalized(prediction).find(normalized(answer)) != std::u32string::npos ? 1 : 0;
}

double f1(std::string_view prediction, std::string_view answer) {
    const auto predicted = normalized(prediction), expected = normalized(answer);
    for (const std::u32string_view whole : {U"yes", U"no", U"noanswer"})
        if (predicted != expected && (predicted == whole || expected == whole)) return 0;
    return longbench::qa_f1(prediction, answer);
}

double rouge_f1(std::string_view prediction, std::string_view answer) {
    return rouge::rouge_l(prediction, answer, rouge::Stemming::porter).f1;
}

double rouge_recall(std::string_view prediction, std::string_view answer) {
    return rouge::rouge_l(prediction, answer, rouge::Stemming::porter).recall;
}

using Metric = double (*)(std::string_view prediction, std::string_view answer);

constexpr std::string_view metric_names[] = {"substring_exact_match", "exact_match", "f1", "rougeL_f1",
                                             "rougeL_recall"};
constexpr Metric metrics[] = {substring_exact_match, exact_match, f1, rouge_f1, rouge_recall};

double best_over(std::span<const std::string> answers, Metric metric, std::string_view prediction) {
    double best = 0;
    for (const std::string& answer : answers) best = std::max(best, metric(prediction, answer));
    return best;
}

/// Returns the character for comparisons in which `re.IGNORECASE` is set.
char32_t without_case(char32_t c) {
    if (c == U'\u0131') return U'i';
    if (c == U'\u017F') return U's';
    if (c == U'\u0130') return U'i';
    return longbench::in_lower_case(std::u32string_view(&c, 1)).front();
}

/// Whether the text has the prefix, which is in ASCII, at this place.
bool has_prefix_at(std::u32string_view text, size_t at, std::string_view prefix) {
    if (text.size() - at < prefix.size()) return false;
    for (size_t i = 0; i < prefix.size(); ++i)
        if (without_case(text[at + i]) != without_case(static_cast<char32_t>(prefix[i]))) return false;
    return true;
}

constexpr char scored_as_helmet[] = "helmet";

double rounded_to_five_decimals(double number) {
    const std::string text = fmt::format("{:.5f}", number);
    double rounded = 0;
    std::from_chars(text.data(), text.data() + text.size(), rounded);
    return rounded;
}

double discounted_gain(std::span<const int64_t> labels) {
    constexpr size_t n_counted = 10;
    double sum = 0;
    for (size_t i = 0; i < std::min(labels.size(), n_counted); ++i)
        if (labels[i] > 0) sum += static_cast<double>(labels[i]) / std::log2(static_cast<double>(i + 2));
    return sum;
}

}  // namespace

std::string parsed_output(std::string_view output, std::string_view prefix) {
    const std::u32string text = characters_of(output);
    size_t begin = 0;
    while (begin < text.size() && !has_prefix_at(text, begin, prefix)) ++begin;
    begin = begin < text.size() ? begin + prefix.size() : 0;
    const size_t end = std::min(text.find(U'\n', begin), text.size());
    const std::string line = utf8_of(std::u32string_view(text).substr(begin, end - begin));
    std::u32string kept = characters_of(longbench::stripped(line));
    if (has_prefix_at(kept, 0, prefix)) kept.erase(0, prefix.size());
    return std::string(longbench::stripped(utf8_of(kept)));
}

std::span<const std::string_view> text_metrics() { return metric_names; }

Scorer text_scorer(std::string_view metric, std::string begin, std::string prefix) {
    const auto* const found = std::ranges::find(metric_names, metric);
    if (found == std::end(metric_names)) throw std::logic_error(fmt::format("HELMET has no metric {}", metric));
    const Metric score = metrics[found - std::begin(metric_names)];
    return {std::string(metric),
            [score, begin = std::move(begin), prefix = std::move(prefix)](std::string_view prediction,
                                                                          std::span<const std::string> answers) {
                const std::string output = begin + std::string(prediction);
                return std::max(best_over(answers, score, output),
                                best_over(answers, score, parsed_output(output, prefix)));
            },
            scored_as_helmet};
}

Scorer ruler_recall(std::string begin) {
    return {"ruler_recall",
            [begin = std::move(begin)](std::string_view prediction, std::span<const std::string> answers) {
                const auto lower = [](std::string_view text) { return longbench::in_lower_case(characters_of(text)); };
                const std::u32string output = lower(begin + std::string(prediction));
                const auto n_found = std::ranges::count_if(answers, [&](const std::string& answer) {
                    return output.find(lower(answer)) != std::u32string::npos;
                });
                return static_cast<double>(n_found) / static_cast<double>(answers.size());
            },
            scored_as_helmet};
}

std::vector<std::string> ranked_ids(std::string_view prediction) {
    std::u32string text = characters_of(prediction);
    std::erase_if(text, [](char32_t c) { return c == U'[' || c == U']' || c == U':'; });
    text = longbench::in_lower_case(text);
    for (size_t at = text.find(U"id"); at != std::u32string::npos; at = text.find(U"id", at)) text.erase(at, 2);

    // The longest list of numbers with > between them; of equally long lists, the first.
    size_t longest_begin = 0, longest_end = 0;
    const auto skip = [&](size_t at, bool (*belongs)(char32_t)) {
        while (at < text.size() && belongs(text[at])) ++at;
        return at;
    };
    for (size_t begin = 0; begin < text.size();) {
        size_t end = skip(begin, longbench::is_digit);
        if (end == begin) {
            ++begin;
            continue;
        }
        for (;;) {
            const size_t separator = skip(end, longbench::is_space);
            if (separator == text.size() || text[separator] != U'>') break;
            const size_t number = skip(separator + 1, longbench::is_space);
            const size_t after = skip(number, longbench::is_digit);
            if (after == number) break;
            end = after;
        }
        if (end - begin > longest_end - longest_begin) longest_begin = begin, longest_end = end;
        begin = end;
    }
    if (longest_end == longest_begin) return {utf8_of(text)};
    std::vector<std::string> ids;
    for (size_t at = longest_begin; at < longest_end;) {
        const size_t end = skip(at, longbench::is_digit);
        std::string id = utf8_of(std::u32string_view(text).substr(at, end - at));
        if (!id.empty() && std::ranges::find(ids, id) == ids.end()) ids.push_back(std::move(id));
        at = std::max(end, at + 1);
    }
    return ids;
}

Scorer ndcg_at_10(std::vector<std::pair<std::string, int64_t>> labels, std::string begin) {
    std::vector<int64_t> best;
    for (const auto& [id, label] : labels) best.push_back(label);
    std::ranges::sort(best, std::greater());
    return {"NDCG@10",
            [of_ids = std::map<std::string, int64_t>(labels.begin(), labels.end()), ideal = discounted_gain(best),
             begin = std::move(begin)](std::string_view prediction, std::span<const std::string>) {
                std::vector<int64_t> gains;
                for (const std::string& id : ranked_ids(begin + std::string(prediction))) {
                    const auto found = of_ids.find(id);
                    gains.push_back(found == of_ids.end() ? 0 : found->second);
                }
                return ideal > 0 ? rounded_to_five_decimals(discounted_gain(gains) / ideal) : 0;
            },
            scored_as_helmet};
}

}  // namespace kvscope::engine::helmet
