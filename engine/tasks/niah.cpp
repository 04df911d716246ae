#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/stopped.h"
#include "engine/common/engine_error.h"
#include "engine/tasks/api/task.h"
#include "engine/tasks/niah/facts.h"
#include "engine/tasks/niah/haystack.h"
#include "engine/tasks/niah/rouge1.h"

namespace kvscope::engine {
namespace niah_file {
namespace {

using niah::FactMaker;
using niah::Facts;
using niah::Haystack;
using policies::ParameterValues;
using policies::SeededRandom;

constexpr int samples_of_a_round = 3;

/// Returns the scorer of kvpress and KVCache-Factory, which compare an answer with the needle (there times 10).
Scorer rouge1_of_needles(const Facts& facts) {
    std::string reference;
    for (const auto& needle : facts.needles)
        if (!needle.facts.empty()) reference += needle.text + " ";
    const auto score = [reference](std::string_view prediction, std::span<const std::string>) {
        return niah::rouge1(prediction, reference);
    };
    return {"rouge1_score", score, "niah as in kvpress"};
}

/// Returns a percentage near the start or the end of the text, as `logistic` of NeedleInAHaystack.
double sigmoid_percentage(double percentage) {
    if (percentage == 0 || percentage == 100) return percentage;
    return std::nearbyint(100 * (1 / (1 + std::exp(0.1 * (percentage - 50)))) * 1000) / 1000;
}

/// Returns depths at equal or sigmoid distances, as the percentages of NeedleInAHaystack. Equal depths count once.
std::vector<double> depths_at_intervals(const ParameterValues& values, int64_t n) {
    const double first = 100 * values.real("depth_min"), last = 100 * values.real("depth_max");
    const bool is_sigmoid = values.text("depth_spacing") == "sigmoid";
    const double step = n > 1 ? (last - first) / static_cast<double>(n - 1) : 0;
    std::vector<double> depths;
    for (int64_t i = 0; i < n; ++i) {
        const double even = i > 0 && i == n - 1 ? last : first + static_cast<double>(i) * step;
        const double depth = (is_sigmoid ? sigmoid_percentage(even) : std::nearbyint(even)) / 100;
        if (std::ranges::find(depths, depth) == depths.end()) depths.push_back(depth);
    }
    return depths;
}

std::vector<double> depths_of(const ParameterValues& values) {
    const int64_t n = values.integer("depth_intervals");
    if (n > 0 && !values.is_default("depths"))
        throw UsageError("--depths and --depth-intervals both give the depths: use one of them");
    for (const std::string name : {"min", "max", "spacing"})
        if (n == 0 && !values.is_default("depth_" + name))
            throw UsageError(fmt::format("--depth-{} needs --depth-intervals, the number of depths", name));
    return n > 0 ? depths_at_intervals(values, n) : values.reals("depths");
}

class SampleMaker {
 public:
    explicit SampleMaker(const SampleRequest& request)
        : request_(request), facts_(request.options), haystack_(request.options) {
        n_before_ = count(".");
        n_new_ = request.n_new == request.task.n_new ? facts_.n_new() : request.n_new;
    }

    int64_t n_new() const { return n_new_; }

    /// Returns a prompt as in RULER: sentences with facts (the needles) among unrelated sentences (the haystack). The
    /// first needle is at the depth, and the others at equal distances after it, as in NeedleInAHaystack.
    TaskSample make(int64_t length, double depth, uint64_t seed) const {
        SeededRandom random(seed);
        Facts facts = facts_.draw(random);
        auto sentences = sentences_beside(facts, length, random);
        TaskSample sample{.length = length, .depth = depth, .n_new = n_new_};
        for (;;) {
            sample.spans.clear();
            sample.context = text_with(facts, sentences, depth, sample.spans);
            if (sentences.size() == 1 || count(sample.context) <= length) break;
            sentences.pop_back();
        }
        if (request_.options.values.text("score_as") == "kvpress") sample.scorer = rouge1_of_needles(facts);
        sample.question = std::move(facts.question);
        sample.answers = std::move(facts.answers);
        return sample;
    }

 private:
    int64_t count(const std::string& text) const {
        return static_cast<int64_t>(request_.tokenizer.encode(text, false, false, request_.stop).size());
    }

    /// Counts the tokens after a full stop, as in the context. A sentence of unknown letters may have no tokens.
    int64_t n_tokens(const std::string& sentence) const {
        return std::max<int64_t>(1, count(". " + sentence) - n_before_);
    }

    std::vector<std::string> sentences_beside(const Facts& facts, int64_t length, SeededRandom random) const {
        int64_t total = 0;
        for (const auto& needle : facts.needles) total += n_tokens(needle.text);
        const int64_t n_needles = total;
        const auto next =
            facts_.fills_haystack()
                ? niah::NextSentence([&, random]() mutable { return facts_.draw_other(random, facts.keys); })
                : haystack_.sentences(random);
        std::vector<std::string> sentences;
        for (;;) {
            throw_if_stopped(request_.stop);
            std::string sentence = next();
            total += n_tokens(sentence);
            if (total > length) break;
            sentences.push_back(std::move(sentence));
        }
        if (sentences.empty())
            throw UsageError(
                fmt::format("--lengths {}: the needle has {} tokens, which leaves no space for another sentence; "
                            "use a greater length",
                            length, n_needles));
        return sentences;
    }

    /// @param spans receives the places of the facts
    static std::string text_with(const Facts& facts, const std::vector<std::string>& sentences, double depth,
                                 std::vector<std::pair<size_t, size_t>>& spans) {
        const auto n_needles = static_cast<double>(facts.needles.size());
        const auto place = [&](size_t needle) {
            const double at = depth + static_cast<double>(needle) * (1 - depth) / n_needles;
            return static_cast<size_t>(std::lround(at * static_cast<double>(sentences.size())));
        };
        std::string text;
        size_t needle = 0;
        for (size_t i = 0; i <= sentences.size(); ++i) {
            for (; needle < facts.needles.size() && place(needle) <= i; ++needle) {
                if (!text.empty()) text += ' ';
                for (const auto& [begin, end] : facts.needles[needle].facts)
                    spans.emplace_back(text.size() + begin, text.size() + end);
                text += facts.needles[needle].text;
            }
            if (i == sentences.size()) break;
            if (!text.empty()) text += ' ';
            text += sentences[i];
        }
        return text;
    }

    const SampleRequest& request_;
    FactMaker facts_;
    Haystack haystack_;
    int64_t n_before_ = 0;
    int64_t n_new_ = 0;
};

/// Returns the samples "niah-<length>-<depth>-<number>", ordered by round, then by length. A sample depends only on
/// the seed and its place, so samples can be added later.
std::vector<TaskSample> make_samples(const SampleRequest& request) {
    const auto& values = request.options.values;
    const auto lengths = values.integers("lengths");
    const auto depths = depths_of(values);
    const auto n_samples = static_cast<int>(values.integer("samples"));
    const SampleMaker maker(request);
    SampleRequest with_answers = request;
    with_answers.n_new = maker.n_new();
    require_lengths_fit_context(lengths, with_answers);
    std::vector<TaskSample> samples;
    std::set<std::string> ids;
    const auto n_places = static_cast<int>(lengths.size() * depths.size());
    for (int first = 0; first < n_samples; first += samples_of_a_round) {
        int place = 0;
        for (const int64_t length : lengths) {
            for (const double depth : depths) {
                for (int i = first; i < std::min(n_samples, first + samples_of_a_round); ++i) {
                    throw_if_stopped(request.stop);
                    const int number = first * n_places + place * samples_of_a_round + i - first;
                    auto sample = maker.make(length, depth, values.seed("seed") + static_cast<uint64_t>(number));
                    sample.id = fmt::format("{}-{}-{:g}-{}", request.task.name, length, depth, i);
                    sample.number = number;
                    if (!ids.insert(sample.id).second)
                        throw UsageError(
                            fmt::format("the length {} with the depth {:g} is given twice: give each combination once",
                                        length, depth));
                    samples.push_back(std::move(sample));
                }
                ++place;
            }
        }
    }
    return samples;
}

std::vector<policies::Parameter> parameters() {
    using namespace policies;
    const Range count{.low = 1, .high = 100};
    return {
        integers_parameter("lengths", "500,1000,2000,4000", {.low = 1}, "Lengths of the contexts, in tokens"),
        reals_parameter("depths", "0.1,0.3,0.5,0.7,0.9", {.low = 0, .high = 1},
                        "Positions of the needle in the context, from 0 (start) to 1 (end)"),
        integer_parameter("depth_intervals", 0, {.low = 0, .high = 1000},
                          "Number of depths from --depth-min to --depth-max instead of --depths, as in "
                          "NeedleInAHaystack; 0: --depths"),
        real_parameter("depth_min", 0, {.low = 0, .high = 1}, "First depth of the intervals"),
        real_parameter("depth_max", 1, {.low = 0, .high = 1}, "Last depth of the intervals"),
        choice_parameter("depth_spacing", {"linear", "sigmoid"}, "linear",
                         "Distances of the depths: equal, in whole percent, or smaller at start and end"),
        integer_parameter("samples", 3, {.low = 1, .high = 100000}, "Number of prompts per length and depth"),
        choice_parameter("needle", {"retrieval", "reasoning"}, "retrieval",
                         "retrieval: asks for the number of a named item; reasoning: the item is found by one "
                         "reasoning step (HeadKV)"),
        choice_parameter("keys", {"items", "words", "numbers", "uuids"}, "items",
                         "Names of the values: 24 items, or RULER's words, numbers of six digits, or UUIDs"),
        choice_parameter("values", {"numbers", "words", "uuids"}, "numbers", "Values that the question asks for"),
        integer_parameter("n_keys", 1, count, "Number of keys; one question asks for --n-queries of them"),
        integer_parameter("n_values", 1, count, "Number of values per key"),
        integer_parameter("n_queries", 1, count, "Number of keys in the question"),
        text_parameter("needle_text", "", "Sentence with {key} and {value} instead of the built-in sentence"),
        text_parameter("needle_question", "", "Question about {key} for --needle-text"),
        text_parameter("needle_answer", "", "Value for --needle-text instead of random values"),
        choice_parameter("filler", {"noise", "needles"}, "noise",
                         "Haystack without --haystack: RULER's noise sentences, or needles with other keys"),
        file_parameter("haystack",
                       "Text for the haystack: a text file, RULER's PaulGrahamEssays.json, or a folder of .txt files"),
        choice_parameter("haystack_order", {"shuffled", "text"}, "shuffled",
                         "Order of the sentences of --haystack: random, or as in the text"),
        choice_parameter("score_as", {"upstream", "kvpress"}, "upstream",
                         "Share of the values that the answer contains, as RULER; or the words that answer and needle "
                         "share (rouge1), as kvpress and KVCache-Factory"),
        seed_parameter(
            "seed",
            "Prompt i uses seed + i: seeds that are closer than the number of prompts (samples × lengths × depths) "
            "can share prompts")};
}

}  // namespace
}  // namespace niah_file

Task niah_task() {
    using namespace niah_file;
    return {.name = "niah",
            .title = "A needle in a haystack as in RULER: facts hidden in a text",
            .citation =
                "Hsieh et al., RULER: What's the Real Context Size of Your Long-Context Language Models?, "
                "COLM 2024, arXiv:2404.06654; spacing of depths as in github.com/gkamradt/LLMTest_NeedleInAHaystack",
            .parameters = parameters(),
            .text_folder = "haystack",
            .n_new = 24,
            .assets = {std::string(ruler::adjective_file), std::string(ruler::noun_file)},
            .scorer = string_match_all(),
            .text_determines_answers = true,
            .make_samples = make_samples};
}

}  // namespace kvscope::engine
