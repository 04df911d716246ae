#include "engine/head_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <set>

#include "common/json.h"
#include "common/lower_case.h"
#include "engine/common/engine_error.h"
#include "engine/common/stopwatch.h"
#include "engine/decode/decode.h"
#include "engine/decode/sampler.h"
#include "engine/prefill/prefill.h"

namespace kvscope::engine {
namespace {

/// Remembers which tokens the full run attends to in the last step of decoding.
class Watcher {
 public:
    Watcher(const policies::ModelShape& shape, int64_t begin, int64_t end)
        : shape_(shape),
          begin_(begin),
          end_(end),
          most_attended_(static_cast<size_t>(shape.n_layers * shape.n_heads)),
          needle_attention_(most_attended_.size()) {}

    void observe(const policies::StepObservations& step) {
        auto head = static_cast<size_t>(step.layer * shape_.n_heads);
        for (const auto& row : step.rows) {
            for (int q = 0; q < row.n_query_heads; ++q, ++head) {
                const auto weights =
                    row.attention.subspan(static_cast<size_t>(q) * row.positions.size(), row.positions.size());
                watch(head, weights);
            }
        }
    }

    int64_t most_attended(size_t head) const { return most_attended_[head]; }
    /// Returns a head's attention to a needle of n tokens in the last step. Only the n most attended tokens count.
    double needle_attention(size_t head) const { return needle_attention_[head]; }
    bool in_needle(int64_t position) const { return position >= begin_ && position < end_; }

 private:
    void watch(size_t head, std::span<const float> weights) {
        std::vector<uint32_t> order(weights.size());
        std::iota(order.begin(), order.end(), 0u);
        const auto n = std::min(order.size(), static_cast<size_t>(end_ - begin_));
        std::partial_sort(
            order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n), order.end(),
            [&](uint32_t a, uint32_t b) { return weights[a] != weights[b] ? weights[a] > weights[b] : a < b; });
        most_attended_[head] = order[0];
        needle_attention_[head] = 0;
        for (size_t i = 0; i < n; ++i) {
            if (in_needle(order[i])) needle_attention_[head] += weights[order[i]];
        }
    }

    policies::ModelShape shape_;
    int64_t begin_, end_;
    std::vector<int64_t> most_attended_;
    std::vector<double> needle_attention_;
};

const Task& niah() { return task_named("niah"); }

double overlap(const std::string& prediction, const std::string& answer, HeadMeasure measure) {
    const auto found = lower_case_words(prediction), expected = lower_case_words(answer);
    std::multiset<std::string> left(found.begin(), found.end());
    double common = 0;
    for (const auto& word : expected) {
        const auto at = left.find(word);
        if (at == left.end()) continue;
        left.erase(at);
        ++common;
    }
    if (common == 0) return 0;
    const double recall = common / static_cast<double>(expected.size());
    if (measure == HeadMeasure::retrieval) return recall;
    const double precision = common / static_cast<double>(found.size());
    return 2 * precision * recall / (precision + recall);
}

/// Whether the answer contains the number and its words overlap enough with the number or with the needle's statement.
bool is_right(const std::string& prediction, const TaskSample& sample, HeadMeasure measure) {
    const auto [begin, end] = sample.spans.back();
    return niah().scorer.score(prediction, sample.answers) > 0 &&
           (overlap(prediction, sample.answers[0], measure) > 0.5 ||
            overlap(prediction, sample.context.substr(begin, end - begin), measure) > 0.5);
}

/// Returns the range of the needle's tokens.
std::pair<int64_t, int64_t> needle_tokens(const Model& model, const PreparedSample& sample,
                                          const std::stop_token& stop) {
    const size_t begin = sample.spans.front().first, size = sample.spans.back().second - begin;
    const size_t first = sample.prompt.text.find(sample.context.substr(begin, size));
    const auto encoding = encode_like_prompt(model, sample.prompt, sample.prompt.text, stop);
    return {static_cast<int64_t>(encoding.first_token_from(first)),
            static_cast<int64_t>(encoding.first_token_from(first + size - 1)) + 1};
}

std::optional<std::vector<double>> measure_sample(const Model& model, HeadMeasure measure, int64_t n_new,
                                                  const PreparedSample& sample, Progress& progress) {
    const auto [needle_begin, needle_end] = needle_tokens(model, sample, progress.stop_token());
    const auto& transformer = model.transformer();
    const auto shape = transformer.shape();
    const auto n = static_cast<int64_t>(sample.prompt.ids.size());
    // The first decode step reads the prompt's last token, so that its attention is observed, too.
    PrefillRequest request;
    request.ids = std::span<const int32_t>(sample.prompt.ids).first(static_cast<size_t>(n - 1));
    request.room = n_new;
    auto prefilled = prefill(transformer, request, nullptr, progress);
    RunCache cache(transformer, policies::Granularity::kv_head, policies::Positions::prompt, false);
    for (size_t layer = 0; layer < prefilled.cache.size(); ++layer)
        cache.adopt(static_cast<int>(layer), prefilled.cache[layer], n - 1);
    cache.reserve(n_new);
    Watcher watcher(shape, needle_begin, needle_end);
    Sequence sequence{&cache, n - 1, 0, [&watcher](const policies::StepObservations& step) { watcher.observe(step); }};
    std::vector<double> gains(static_cast<size_t>(shape.n_layers * shape.n_heads), 0.0);
    const double share = 1.0 / static_cast<double>(needle_end - needle_begin);
    const auto end_ids = model.stop_ids(false);
    std::vector<int32_t> answer;
    int32_t token = sample.prompt.ids.back();
    while (static_cast<int64_t>(answer.size()) < n_new) {
        progress.throw_if_stopped();
        const std::span<const int32_t> tokens(&token, 1);
        const at::Tensor logits = transformer.logits(feed_tokens(transformer, {&sequence, 1}, {&tokens, 1}));
        if (sequence.failed()) throw RunError(sequence.error);
        const int32_t next = greedy_token({logits.const_data_ptr<float>(), static_cast<size_t>(logits.size(1))});
        for (size_t head = 0; head < gains.size(); ++head) {
            if (measure == HeadMeasure::reasoning) {
                gains[head] += watcher.needle_attention(head) * share;
                continue;
            }
            const int64_t position = watcher.most_attended(head);
            if (watcher.in_needle(position) && sample.prompt.ids[static_cast<size_t>(position)] == next)
                gains[head] += share;
        }
        answer.push_back(token = next);
        if (std::binary_search(end_ids.begin(), end_ids.end(), next)) break;
    }
    if (!is_right(model.answer_text(answer, progress.stop_token()), sample, measure)) return std::nullopt;
    return gains;
}

}  // namespace

const Task& head_profile_task() {
    static const Task task = [] {
        Task with_defaults = niah();
        constexpr std::array used{"lengths", "depths", "samples", "needle", "haystack", "haystack_order", "seed"};
        std::erase_if(with_defaults.parameters,
                      [&](const auto& one) { return std::ranges::find(used, one.name) == used.end(); });
        for (auto& parameter : with_defaults.parameters) {
            if (parameter.name == "lengths") parameter.fallback = "500,1000,2000";
            if (parameter.name == "samples") parameter.fallback = int64_t{2};
        }
        with_defaults.n_new = 50;
        return with_defaults;
    }();
    return task;
}

std::vector<PreparedSample> prepare_head_profile(const Model& model, HeadMeasure measure, TaskOptions needles,
                                                 const PromptOptions& prompt) {
    policies::ParameterValues values(niah().parameters);
    for (const auto& given : needles.values.declared()) values.set_value(given.name, needles.values.value(given.name));
    const auto lengths = values.integers("lengths");
    const auto depths = values.reals("depths");
    const int64_t n_samples = values.integer("samples");
    uint64_t seed = values.seed("seed");
    values.set("needle", measure == HeadMeasure::retrieval ? "retrieval" : "reasoning");
    values.set("samples", "1");
    std::vector<PreparedSample> samples;
    for (const int64_t length : lengths) {
        for (const double depth : depths) {
            for (int64_t i = 0; i < n_samples; ++i) {
                values.set_value("lengths", std::to_string(length));
                values.set_value("depths", policies::to_text(depth));
                values.set_value("seed", std::to_string(seed++));
                needles.values = values;
                PreparedSample& sample =
                    samples.emplace_back(std::move(prepare_samples(model, niah(), needles, prompt)[0]));
                sample.id = sample.prompt.name = fmt::format("niah-{}-{}-{}", length, policies::to_text(depth), i);
            }
        }
    }
    return samples;
}

HeadProfile profile_heads(const Model& model, HeadMeasure measure, std::span<const PreparedSample> samples,
                          int64_t n_new, Progress& progress,
                          const std::function<void(size_t sample, bool is_right, double seconds)>& on_sample) {
    const auto shape = model.transformer().shape();
    HeadProfile profile;
    profile.scores.resize(static_cast<size_t>(shape.n_layers * shape.n_heads));
    for (size_t i = 0; i < samples.size(); ++i) {
        const Stopwatch watch;
        const auto gains = measure_sample(model, measure, n_new, samples[i], progress);
        if (on_sample) on_sample(i, gains.has_value(), watch.seconds());
        if (!gains) continue;
        ++profile.n_right;
        for (size_t head = 0; head < gains->size(); ++head) profile.scores[head].push_back((*gains)[head]);
    }
    if (profile.n_right == 0)
        throw RunError(fmt::format(
            "none of the {} needle prompts was answered correctly, so the heads cannot be measured: use shorter "
            "--lengths, or a model that can answer them",
            samples.size()));
    return profile;
}

std::string to_headkv_json(const HeadProfile& profile, const policies::ModelShape& shape) {
    nlohmann::ordered_json json;
    for (int layer = 0; layer < shape.n_layers; ++layer) {
        for (int head = 0; head < shape.n_heads; ++head)
            json[fmt::format("{}-{}", layer, head)] = profile.scores[static_cast<size_t>(layer * shape.n_heads + head)];
    }
    return json.dump(1) + "\n";
}

}  // namespace kvscope::engine
