#include "engine/answering.h"

#include <optional>
#include <utility>

#include "engine/answer_attention.h"
#include "engine/stopwatch.h"

namespace kvscope::engine {

std::vector<AnswerStart> Answering::read_question(const Prompt& prompt, std::span<ActiveRun* const> runs,
                                                  bool last_question) {
    std::vector<AnswerStart> starts;
    for (ActiveRun* run : runs) {
        const bool is_done = last_question && !options_.keep_caches;
        starts.push_back({is_done ? std::move(run->cache()) : run->cache().clone(), run->acting(), run->position(),
                          run->first_logits()});
    }
    read_question(prompt, starts);
    return starts;
}

void Answering::read_question(const Prompt& prompt, std::vector<AnswerStart>& starts) {
    const auto n_question = static_cast<int64_t>(prompt.ids.size()) - prompt.n_visible();
    for (auto& start : starts) start.cache.reserve(n_question + options_.n_new);
    if (n_question == 0) return;
    const Stopwatch watch;
    const auto question = std::span<const int32_t>(prompt.ids).last(static_cast<size_t>(n_question));
    // Policies that act while decoding act on the answer, not on the question, which is kept whole.
    std::vector<Sequence> sequences;
    for (auto& start : starts) sequences.push_back({&start.cache, start.position, 0, nullptr});
    const std::vector<std::span<const int32_t>> tokens(starts.size(), question);
    const at::Tensor residual = feed(transformer(), sequences, tokens);
    for (size_t i = 0; i < starts.size(); ++i) {
        const at::Tensor logits =
            transformer().logits(residual.narrow(0, static_cast<int64_t>(i + 1) * n_question - 1, 1));
        starts[i].logits.assign(logits.const_data_ptr<float>(), logits.const_data_ptr<float>() + logits.numel());
        starts[i].position = sequences[i].position;
    }
    timings_.question_s += watch.seconds();
}

std::vector<Generation> Answering::decode(std::span<AnswerStart> starts, const OnToken& on_token, const OnEnd& on_end) {
    std::vector<std::optional<RunCache>> copies;
    std::vector<RunCache::Mark> marks;
    std::vector<Sequence> sequences;
    std::vector<std::vector<float>> logits;
    for (auto& start : starts) {
        const bool rewinds = start.cache.can_rewind() && !start.acting;
        copies.push_back(rewinds ? std::nullopt : std::optional<RunCache>(start.cache.clone()));
        marks.push_back(rewinds ? start.cache.mark() : RunCache::Mark{});
        logits.push_back(start.logits);
    }
    for (size_t i = 0; i < starts.size(); ++i)
        sequences.push_back({copies[i] ? &*copies[i] : &starts[i].cache, starts[i].position, 0, starts[i].acting});
    double elsewhere = 0;
    const auto end = [&](std::span<const size_t> ended, std::span<const Generation> all, bool goes_on) {
        const Stopwatch pause;
        for (const size_t i : ended) {
            timings_.n_generated += static_cast<int64_t>(all[i].ids.size());
            if (!copies[i]) starts[i].cache.rewind(marks[i]);
        }
        if (on_end) on_end(ended, all, goes_on);
        elsewhere += pause.seconds();
    };
    const Stopwatch watch;
    auto generations = generate(transformer(), sequences, logits, options_.n_new, options_.sampling,
                                model_.stop_ids(options_.ignore_eos), progress_, on_token, end);
    timings_.decode_s += watch.seconds() - elsewhere;
    return generations;
}

FullReference Answering::reference(AnswerStart& full, const Generation& answer, int64_t n_context,
                                   std::vector<float>* attention, Progress& progress) {
    const Stopwatch watch;
    const auto mark = full.cache.mark();
    full.cache.reserve(static_cast<int64_t>(answer.ids.size()));
    auto reference = reference_of(transformer(), full.sequence(), full.logits, answer.ids, progress);
    if (attention) *attention = answer_attention(transformer(), full.cache, reference, n_context);
    full.cache.rewind(mark);
    timings_.compare_s += watch.seconds();
    return reference;
}

std::vector<Comparison> Answering::compare(const FullReference& reference, std::span<AnswerStart* const> starts,
                                           Progress& progress) {
    std::vector<Sequence> sequences;
    std::vector<std::vector<float>> logits;
    const auto extra = static_cast<int64_t>(reference.tokens.size());
    for (auto* start : starts) {
        start->cache.reserve(extra);
        sequences.push_back(start->sequence());
        logits.push_back(start->logits);
    }
    const Stopwatch watch;
    auto comparisons = engine::compare(transformer(), reference, sequences, logits, progress);
    timings_.compare_s += watch.seconds();
    return comparisons;
}

}  // namespace kvscope::engine
