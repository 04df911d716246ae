#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "common/stopped.h"
#include "engine/common/engine_error.h"
#include "engine/tasks/api/item_names.h"
#include "engine/tasks/api/task.h"
#include "policies/methods/seeded_random.h"

namespace kvscope::engine {
namespace timing_file {
namespace {

/// Returns the longest text of random names that has at most `length` tokens, and at least one word.
std::string text_of_length(const SampleRequest& request, int64_t length, uint64_t seed) {
    policies::SeededRandom random(seed);
    std::string text;
    std::vector<size_t> ends;  // of the first words
    for (int64_t i = 0; i < length; ++i) {
        if (i > 0) text += ' ';
        text += item_names[static_cast<size_t>(random.below(item_names.size()))];
        ends.push_back(text.size());
    }
    const auto is_too_long = [&](size_t end) {
        const auto ids = request.tokenizer.encode(text.substr(0, end), false, false, request.stop);
        return static_cast<int64_t>(ids.size()) > length;
    };
    const auto first_too_long =
        std::partition_point(ends.begin(), ends.end(), [&](size_t end) { return !is_too_long(end); });
    text.resize(first_too_long == ends.begin() ? ends.front() : *(first_too_long - 1));
    return text;
}

constexpr int64_t most_repeats = 1000;

/// Returns a number for two places in lists, which stays the same if a list gets longer (Cantor's pairing function).
int64_t number_of_pair(int64_t a, int64_t b) { return (a + b) * (a + b + 1) / 2 + b; }

/// Returns the samples "timing-<length>-<new tokens>[-b<batch>]-<repeat>", ordered by repeat, so that a slow minute of
/// the machine affects all of them alike. Repeats have different texts, because results of equal samples count as one.
std::vector<TaskSample> make_samples(const SampleRequest& request) {
    const auto& values = request.options.values;
    const auto lengths = values.integers("lengths"), counts = values.integers("tokens"),
               batches = values.integers("batch");
    if (request.n_new != request.task.n_new)
        throw UsageError(fmt::format(
            "-n {0}: the task timing has a list of numbers of tokens instead; use --tokens {0}", request.n_new));
    SampleRequest longest = request;
    longest.n_new = *std::ranges::max_element(counts);
    require_lengths_fit_context(lengths, longest);
    std::vector<TaskSample> samples;
    std::set<std::string> ids;
    const auto add = [&](const std::string& text, std::array<size_t, 3> places, int64_t repeat) {
        TaskSample sample{.length = lengths[places[0]], .n_new = counts[places[1]], .batch = batches[places[2]]};
        sample.id = fmt::format("{}-{}-{}{}-{}", request.task.name, sample.length, sample.n_new,
                                sample.batch > 1 ? fmt::format("-b{}", sample.batch) : "", repeat);
        if (!ids.insert(sample.id).second)
            throw UsageError(
                fmt::format("the length {} with {} new tokens and a batch of {} is given twice: give each "
                            "combination once",
                            sample.length, sample.n_new, sample.batch));
        const auto place = [&](size_t i) { return static_cast<int64_t>(places[i]); };
        const int64_t pair = std::min(number_of_pair(place(0), place(1)), int64_t{1} << 20);  // beyond, too large
        const int64_t number = number_of_pair(pair, place(2)) * most_repeats + repeat;
        if (number > std::numeric_limits<int>::max())
            throw UsageError(fmt::format("--lengths, --tokens and --batch have {}, {} and {} values: use fewer values",
                                         lengths.size(), counts.size(), batches.size()));
        sample.number = static_cast<int>(number);
        sample.subset = fmt::format("{} new tokens", sample.n_new);
        sample.context = text;
        samples.push_back(std::move(sample));
    };
    for (int64_t repeat = 0; repeat < values.integer("repeat"); ++repeat) {
        for (size_t i = 0; i < lengths.size(); ++i) {
            throw_if_stopped(request.stop);
            const std::string text = text_of_length(request, lengths[i], static_cast<uint64_t>(repeat));
            for (size_t j = 0; j < counts.size(); ++j)
                for (size_t k = 0; k < batches.size(); ++k) add(text, {i, j, k}, repeat);
        }
    }
    return samples;
}

}  // namespace
}  // namespace timing_file

Task timing_task() {
    using namespace timing_file;
    using namespace policies;
    return {
        .name = "timing",
        .title = "Times and memory of isolated runs over prompt lengths and numbers of new tokens",
        .citation = "no publication; the texts are random words, and answers have no score",
        .parameters = {integers_parameter("lengths", "512,1024,2048", {.low = 1}, "Lengths of the prompts, in tokens"),
                       integers_parameter("tokens", "32", {.low = 2},
                                          "Numbers of new tokens; the prefill computes the first of them"),
                       integers_parameter("batch", "1", {.low = 1, .high = 4096},
                                          "Numbers of equal sequences that are decoded as one batch, each with its own "
                                          "cache; the prompt is read once"),
                       integer_parameter(
                           "repeat", 6, {.low = 1, .high = most_repeats},
                           "Number of prompts per length, number of new tokens and batch, after one warm-up")},
        .n_new = 32,
        .applies_template = false,  // its tokens would add to the lengths
        .scorer = {"", [](std::string_view,
                          std::span<const std::string>) { return std::numeric_limits<double>::quiet_NaN(); }},
        .measures_time = true,
        .text_determines_answers = true,
        .make_samples = make_samples};
}

}  // namespace kvscope::engine
