#include "engine/decode/decode_answers.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/common/engine_error.h"
#include "engine/common/stopwatch.h"
#include "engine/device/catch_single_run_failure.h"
#include "engine/device/cpu_tensor_memory_pool.h"

namespace kvscope::engine {

namespace {

void change_form_where_asked(size_t s, Sequence& sequence, const AskSwitch& ask_switch) {
    const bool can_change = ask_switch && sequence.acting_as<policies::StoresWhileDecoding>();
    if (can_change && ask_switch(s, sequence.switching.is_full_at(sequence.step - 1)))
        sequence.switching.change_at(sequence.step);
}

}  // namespace

std::vector<Generation> decode_answers(const Transformer& model, std::span<Sequence> sequences,
                                       std::span<const std::vector<float>> first_logits, int64_t n_new,
                                       const SamplingOptions& sampling, std::span<const int32_t> end_ids,
                                       Progress& progress, const OnToken& on_token, const OnEnd& on_end,
                                       const AskSwitch& ask_switch) {
    const TensorMemoryPool memory;
    std::vector<Generation> generations(sequences.size());
    std::vector<Sampler> samplers(sequences.size(), Sampler(sampling));
    std::vector<size_t> active, ended;
    HostBuffer room;
    const auto hand_over = [&] {
        for (const size_t s : ended) generations[s].switching = sequences[s].switching.until(sequences[s].step);
        if (on_end && !ended.empty()) on_end(ended, generations, !active.empty());
        ended.clear();
    };
    const auto fails = [&](size_t s, const std::string& error) {
        if (!error.empty())
            generations[s].error = generations[s].ids.empty() ? error
                                                              : fmt::format("after token {} of the answer: {}",
                                                                            generations[s].ids.size(), error);
        return !error.empty();
    };
    const auto draw = [&](size_t s, std::span<const float> logits) {
        int32_t id = 0;
        if (fails(s, catch_single_run_failure([&] { id = samplers[s].next(logits); }))) return false;
        generations[s].ids.push_back(id);
        if (on_token) on_token(s, id);
        return !std::binary_search(end_ids.begin(), end_ids.end(), id) &&
               static_cast<int64_t>(generations[s].ids.size()) < n_new;
    };
    for (size_t s = 0; s < sequences.size() && n_new > 0; ++s) {
        const bool goes_on = !fails(s, sequences[s].error) && draw(s, first_logits[s]);
        (goes_on ? active : ended).push_back(s);
    }
    hand_over();
    progress.begin("decode", n_new, "tokens");
    for (int64_t done = 1; !active.empty(); ++done) {
        progress.throw_if_stopped();
        const Stopwatch watch;
        std::vector<Sequence> batch;
        std::vector<std::span<const int32_t>> tokens;
        for (const size_t s : active) {
            change_form_where_asked(s, sequences[s], ask_switch);
            batch.push_back(sequences[s]);
            tokens.emplace_back(&generations[s].ids.back(), 1);
        }
        const at::Tensor logits = model.logits(feed_tokens(model, batch, tokens), room);
        const double seconds = watch.seconds();
        std::vector<size_t> remaining;
        for (size_t i = 0; i < active.size(); ++i) {
            const size_t s = active[i];
            sequences[s] = batch[i];
            generations[s].seconds += seconds;
            const float* row = logits.const_data_ptr<float>() + static_cast<int64_t>(i) * logits.size(1);
            const bool goes_on = !fails(s, batch[i].error) && draw(s, {row, static_cast<size_t>(logits.size(1))});
            (goes_on ? remaining : ended).push_back(s);
        }
        active = std::move(remaining);
        progress.advance(done + 1);
        hand_over();
    }
    return generations;
}

}  // namespace kvscope::engine
