#include "engine/answer_phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/common/stopwatch.h"
#include "engine/decode/answer_attention.h"
#include "engine/decode/kl_of_dropped_tokens.h"
#include "engine/device/catch_single_run_failure.h"

namespace kvscope::engine {

std::vector<AnswerStart> AnswerPhases::read_question(const Prompt& prompt, std::span<ActiveRun* const> runs,
                                                     bool last_question) {
    const bool is_done = last_question && !options_.keep_caches;
    const auto n_more = static_cast<int64_t>(prompt.ids.size()) - prompt.n_visible() + options_.n_new;
    std::vector<AnswerStart> starts;
    for (ActiveRun* run : runs) {
        auto& start = starts.emplace_back(
            AnswerStart{RunCache(transformer(), policies::Granularity::kv_head, policies::Positions::prompt, false),
                        run->acting(), run->position(), run->first_logits(), run->record.label});
        start.switching = switching_of(start.acting);
        if (!start.acts()) start.own = run->cache().mark();
        start.error = catch_single_run_failure(
            [&] { start.cache = start.own || is_done ? std::move(run->cache()) : run->cache().clone(n_more); });
    }
    read_question(prompt, starts);
    return starts;
}

void AnswerPhases::add_copies(std::vector<AnswerStart>& starts) const {
    if (options_.batch == 1 || !starts.front().error.empty()) return;
    const AnswerStart& first = starts.front();
    bool shares = first.acts();
    for (int layer = 0; layer < first.cache.n_layers(); ++layer) shares = shares || first.cache.stores_parts(layer);
    std::string error = fmt::format(
        "the sequences of a batch of {} would share the policy's state or its stored entries: use --batch 1",
        options_.batch);
    if (!shares) {
        starts.reserve(static_cast<size_t>(options_.batch));
        error = catch_single_run_failure([&] {
            while (static_cast<int64_t>(starts.size()) < options_.batch) {
                const AnswerStart& one = starts.front();
                starts.push_back({one.cache.clone(options_.n_new), {}, one.position, one.logits, one.run});
            }
        });
    }
    starts.front().error = error;
}

void AnswerPhases::give_back(std::span<ActiveRun* const> runs, std::span<AnswerStart> starts) {
    for (size_t i = 0; i < runs.size(); ++i) {
        if (!starts[i].own) continue;
        starts[i].cache.rewind(*starts[i].own);
        runs[i]->cache() = std::move(starts[i].cache);
    }
}

void AnswerPhases::read_question(const Prompt& prompt, std::vector<AnswerStart>& starts) {
    const auto n_question = static_cast<int64_t>(prompt.ids.size()) - prompt.n_visible();
    std::vector<AnswerStart*> reading;
    for (auto& start : starts) {
        if (!start.error.empty()) continue;
        start.cache.reserve(n_question + options_.n_new);
        reading.push_back(&start);
    }
    if (n_question == 0 || reading.empty()) return;
    const Stopwatch watch;
    const auto question = std::span<const int32_t>(prompt.ids).last(static_cast<size_t>(n_question));
    // Policies may change entries only while the answer is decoded, so no policy acts on the question.
    std::vector<Sequence> sequences;
    for (auto* start : reading) sequences.push_back({&start->cache, start->position, 0, {}, start->run});
    const std::vector<std::span<const int32_t>> tokens(reading.size(), question);
    const at::Tensor logits = transformer().logits(read_given_tokens(transformer(), sequences, tokens, progress_));
    for (size_t i = 0; i < reading.size(); ++i) {
        const float* row = logits.const_data_ptr<float>() + static_cast<int64_t>(i) * logits.size(1);
        reading[i]->logits.assign(row, row + logits.size(1));
        reading[i]->position = sequences[i].position;
        if (sequences[i].failed()) reading[i]->error = "reading the question: " + sequences[i].error;
    }
    timings_.question_s += watch.seconds();
}

std::vector<Generation> AnswerPhases::decode(std::span<AnswerStart> starts, const OnToken& on_token,
                                             const OnEnd& on_end, const AskSwitch& ask_switch) {
    std::vector<std::optional<RunCache>> copies(starts.size());
    std::vector<RunCache::Mark> marks(starts.size());
    std::vector<Sequence> sequences;
    std::vector<std::vector<float>> logits;
    for (size_t i = 0; i < starts.size(); ++i) {
        auto& start = starts[i];
        sequences.push_back(start.sequence());
        logits.push_back(start.logits);
        if (!start.error.empty()) continue;
        if (!start.acts())
            marks[i] = start.cache.mark();
        else
            sequences[i].error = catch_single_run_failure(
                [&] { sequences[i].cache = &copies[i].emplace(start.cache.clone(options_.n_new)); });
    }
    const auto stop_ids = model_.stop_ids(options_.ignore_eos);
    std::vector<int32_t> end_ids(stop_ids.begin(), stop_ids.end());
    if (!options_.end_ids.empty()) {
        end_ids.insert(end_ids.end(), options_.end_ids.begin(), options_.end_ids.end());
        std::sort(end_ids.begin(), end_ids.end());
        for (auto& row : logits)
            for (const int32_t id : end_ids)
                if (static_cast<size_t>(id) < row.size())
                    row[static_cast<size_t>(id)] = -std::numeric_limits<float>::infinity();
    }
    double elsewhere = 0;
    const auto end = [&](std::span<const size_t> ended, std::span<const Generation> all, bool goes_on) {
        const Stopwatch pause;
        for (const size_t i : ended) {
            timings_.n_generated += static_cast<int64_t>(all[i].ids.size());
            starts[i].switching = sequences[i].switching;
            if (all[i].error.empty() && !copies[i]) starts[i].cache.rewind(marks[i]);
        }
        if (on_end) on_end(ended, all, goes_on);
        elsewhere += pause.seconds();
    };
    const Stopwatch watch;
    auto generations = decode_answers(transformer(), sequences, logits, options_.n_new, sampling_of(options_), end_ids,
                                      progress_, on_token, end, ask_switch);
    timings_.decode_s += watch.seconds() - elsewhere;
    return generations;
}

FullReference AnswerPhases::reference(AnswerStart& full, const Generation& answer, int64_t n_context,
                                      std::vector<float>* attention, Progress& progress) {
    const Stopwatch watch;
    const auto mark = full.cache.mark();
    full.cache.reserve(static_cast<int64_t>(answer.ids.size()));
    auto reference = compute_full_reference(transformer(), full.sequence(), full.logits, answer.ids, progress);
    if (attention) *attention = answer_attention(transformer(), full.cache, reference, n_context);
    for (int layer = 0; options_.record && layer < full.cache.n_layers(); ++layer)
        reference.later_keys.push_back(copy_keys_from_position(transformer(), full.cache, layer, n_context));
    full.cache.rewind(mark);
    timings_.compare_s += watch.seconds();
    return reference;
}

std::vector<Comparison> AnswerPhases::compare(const FullReference& reference, std::span<AnswerStart* const> starts,
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
    auto comparisons = engine::compare_with_full_run(transformer(), reference, sequences, logits, progress);
    timings_.compare_s += watch.seconds();
    return comparisons;
}

void AnswerPhases::add_attention_lost(const RunCache& full, const FullReference& reference, int64_t n_context,
                                      std::span<const ActiveRun* const> runs, std::span<Comparison> comparisons,
                                      Progress& progress) {
    const Stopwatch watch;
    std::vector<ComparedRun> compared;
    std::vector<Comparison*> of;
    for (size_t i = 0; i < runs.size(); ++i) {
        if (!comparisons[i].error.empty() || runs[i]->evicts_while_decoding()) continue;
        compared.emplace_back(runs[i]->record, comparisons[i].step_kl, transformer().shape().n_layers);
        of.push_back(&comparisons[i]);
    }
    if (compared.empty()) return;
    auto lost = attribute_kl_to_dropped_tokens(transformer(), full, reference, n_context, compared, progress);
    for (size_t i = 0; i < of.size(); ++i) of[i]->attention_lost = std::move(lost[i]);
    timings_.compare_s += watch.seconds();
}

}  // namespace kvscope::engine
