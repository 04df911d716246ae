#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "common/stopped.h"
#include "engine/common/engine_error.h"
#include "engine/tasks/api/item_names.h"
#include "engine/tasks/api/task.h"
#include "policies/methods/seeded_random.h"

namespace kvscope::engine {
namespace niah_file {
namespace {

using policies::SeededRandom;

constexpr int samples_of_a_round = 3;

constexpr std::array noise{"The grass is green.", "The sky is blue.", "The sun is yellow.", "Here we go.",
                           "There and back again."};

/// Splits a text after each . ! or ? that white space follows. Line breaks become spaces.
std::vector<std::string> sentences_of(std::string_view text) {
    std::vector<std::string> sentences;
    std::string sentence;
    for (size_t i = 0; i < text.size(); ++i) {
        const bool is_space = text[i] == ' ' || text[i] == '\n' || text[i] == '\r' || text[i] == '\t';
        if (!is_space) sentence += text[i];
        if (is_space && !sentence.empty() && sentence.back() != ' ') sentence += ' ';
        const bool ends = !is_space && (text[i] == '.' || text[i] == '!' || text[i] == '?') &&
                          (i + 1 == text.size() || text[i + 1] == ' ' || text[i + 1] == '\n' || text[i + 1] == '\r');
        if (ends) sentences.push_back(std::exchange(sentence, {}));
    }
    while (!sentence.empty() && sentence.back() == ' ') sentence.pop_back();
    if (!sentence.empty()) sentences.push_back(sentence);
    return sentences;
}

class Haystack {
 public:
    Haystack(const std::string& text, SeededRandom random) : random_(random) {
        if (!text.empty()) sentences_ = sentences_of(text);
        is_noise_ = sentences_.empty();
        if (is_noise_) sentences_.assign(noise.begin(), noise.end());
    }

    const std::string& next() {
        if (next_ == 0 && !is_noise_) {
            for (size_t i = sentences_.size(); i > 1; --i)
                std::swap(sentences_[i - 1], sentences_[static_cast<size_t>(random_.below(static_cast<int64_t>(i)))]);
        }
        const std::string& sentence = sentences_[next_];
        next_ = (next_ + 1) % sentences_.size();
        return sentence;
    }

 private:
    SeededRandom random_;
    std::vector<std::string> sentences_;
    bool is_noise_ = false;
    size_t next_ = 0;
};

struct NeedleForm {
    bool needs_reasoning = false;
    int64_t n_tokens = 0;
    double depth = 0;
    uint64_t seed = 0;
};

/// Returns a prompt as in RULER: one sentence with a number (the needle) among unrelated sentences (the haystack).
TaskSample make_sample(const SampleRequest& request, const NeedleForm& form, const std::string& text) {
    SeededRandom random(form.seed);
    const auto draw = [&](const auto& from) {
        return std::string(from[static_cast<size_t>(random.below(static_cast<int64_t>(from.size())))]);
    };
    TaskSample sample{.length = form.n_tokens, .depth = form.depth};
    const std::string name = draw(item_names);
    sample.answers = {std::to_string(100000 + random.below(900000))};
    const std::string statement = fmt::format("The special magic number of the {} is {}.", name, sample.answers[0]);
    std::string needle = statement;
    sample.question = fmt::format("What is the special magic number of the {}? Answer with the number.", name);
    if (form.needs_reasoning) {
        const std::string owner = draw(std::array{"Alice", "Boris", "Clara", "David", "Elena", "Frank"});
        needle = fmt::format("{} owns the {}. {}", owner, name, statement);
        sample.question =
            fmt::format("What is the special magic number of the thing that {} owns? Answer with the number.", owner);
    }
    const auto count = [&](const std::string& of) {
        return static_cast<int64_t>(request.tokenizer.encode(of, false, false, request.stop).size());
    };
    const int64_t n_before = count(".");
    const auto n_tokens = [&](const std::string& sentence) {
        // Counts the tokens after a full stop, as in the context. A sentence of unknown letters may have no tokens.
        return std::max<int64_t>(1, count(". " + sentence) - n_before);
    };
    Haystack haystack(text, random);
    std::vector<std::string> sentences;
    int64_t total = n_tokens(needle);
    for (;;) {
        const std::string& sentence = haystack.next();
        const int64_t length = n_tokens(sentence);
        if (total + length > form.n_tokens) break;
        total += length;
        sentences.push_back(sentence);
    }
    if (sentences.empty())
        throw UsageError(
            fmt::format("--lengths {}: the needle has {} tokens, which leaves no space for another sentence; "
                        "use a greater length",
                        form.n_tokens, n_tokens(needle)));
    for (;;) {
        const auto place = std::lround(form.depth * static_cast<double>(sentences.size()));
        auto with_needle = sentences;
        with_needle.insert(with_needle.begin() + place, needle);
        sample.context = fmt::format("{}", fmt::join(with_needle, " "));
        if (sentences.size() == 1 || count(sample.context) <= form.n_tokens) break;
        sentences.pop_back();
    }
    const size_t begin = sample.context.find(needle), end = begin + needle.size(), fact = end - statement.size();
    if (form.needs_reasoning) sample.spans.emplace_back(begin, fact - 1);
    sample.spans.emplace_back(fact, end);
    return sample;
}

/// Returns an empty text if the user named no file.
std::string haystack_text(const TaskOptions& options) {
    const auto file = options.files.find("haystack");
    if (file == options.files.end()) return {};
    if (file->second.find_first_not_of(" \t\r\n") == std::string::npos)
        throw UsageError(options.values.text("haystack") +
                         ": the haystack is empty: give a text, or omit --haystack for the built-in haystack");
    return file->second;
}

/// Returns the samples "niah-<length>-<depth>-<number>", ordered by round, then by length. A sample depends only on
/// the seed and its place, so samples can be added later.
std::vector<TaskSample> make_samples(const SampleRequest& request) {
    const auto& values = request.options.values;
    const auto lengths = values.integers("lengths");
    const auto depths = values.reals("depths");
    const auto n_samples = static_cast<int>(values.integer("samples"));
    const std::string text = haystack_text(request.options);
    require_lengths_fit_context(lengths, request);
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
                    const uint64_t seed = values.seed("seed") + static_cast<uint64_t>(number);
                    auto sample =
                        make_sample(request, {values.text("needle") == "reasoning", length, depth, seed}, text);
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

}  // namespace
}  // namespace niah_file

Task niah_task() {
    using namespace niah_file;
    using namespace policies;
    return {.name = "niah",
            .title = "A needle in a haystack as in RULER: a number hidden in a text",
            .citation =
                "Hsieh et al., RULER: What's the Real Context Size of Your Long-Context Language Models?, "
                "COLM 2024, arXiv:2404.06654",
            .parameters = {integers_parameter("lengths", "500,1000,2000,4000", {.low = 1},
                                              "Lengths of the contexts, in tokens"),
                           reals_parameter("depths", "0.1,0.3,0.5,0.7,0.9", {.low = 0, .high = 1},
                                           "Positions of the needle in the context, from 0 (start) to 1 (end)"),
                           integer_parameter("samples", 3, {.low = 1, .high = 100000},
                                             "Number of prompts per length and depth"),
                           choice_parameter("needle", {"retrieval", "reasoning"}, "retrieval",
                                            "retrieval: asks for the number of a named item; reasoning: the item is "
                                            "found by one reasoning step (HeadKV)"),
                           file_parameter("haystack", "Text file for the haystack (default: RULER's noise sentences)"),
                           seed_parameter("seed", "Seed of the first sample")},
            .n_new = 24,
            .scorer = string_match_all(),
            .text_determines_answers = true,
            .make_samples = make_samples};
}

}  // namespace kvscope::engine
