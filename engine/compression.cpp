#include "engine/compression.h"

#include <algorithm>
#include <utility>

#include "engine/classifier/prompt_probabilities.h"
#include "engine/common/engine_error.h"
#include "engine/common/stopwatch.h"
#include "engine/decode/look_ahead.h"
#include "engine/device/catch_single_run_failure.h"
#include "engine/parallel_decisions.h"
#include "engine/prefill/gradient_alignment.h"
#include "engine/prefill/prefill.h"
#include "engine/prefill/projection_eigenvectors.h"
#include "engine/prefill/recorded_measures.h"

namespace kvscope::engine {
namespace {

policies::Needs union_of(const Runs& runs) {
    policies::Needs all;
    for (const auto& run : runs) {
        if (run->failed()) continue;
        all.window_queries = std::max(all.window_queries, run->needs().window_queries);
        all.attention_sums = all.attention_sums || run->needs().attention_sums;
        all.hidden_states = all.hidden_states || run->needs().hidden_states;
        all.projection_inputs = all.projection_inputs || run->needs().projection_inputs;
        all.keys_before_rope = all.keys_before_rope || run->needs().keys_before_rope;
        all.entries = all.entries || (run->reads_entries() && run->filter_layer() < 0);
    }
    return all;
}

/// Returns each layer after which a run selects tokens for a second pass. The run reads entries of that layer only.
std::vector<int> entry_layers_of(const Runs& runs) {
    std::vector<int> layers;
    for (const auto& run : runs) {
        if (!run->failed() && run->filter_layer() >= 0 && run->reads_entries()) layers.push_back(run->filter_layer());
    }
    return layers;
}

struct Tails {
    std::vector<Tail> tails;
    std::vector<int> of_run;  ///< index into the pseudo tokens for each run; -1 for none

    explicit Tails(const Runs& runs) : of_run(runs.size(), -1) {
        for (size_t i = 0; i < runs.size(); ++i) {
            if (runs[i]->failed() || runs[i]->appended().ids.empty()) continue;
            const policies::AppendedTokens& appended = runs[i]->appended();
            const auto same = [&](const Tail& tail) {
                return tail.ids == appended.ids && tail.positions == appended.positions;
            };
            const auto found = std::find_if(tails.begin(), tails.end(), same);
            of_run[i] = static_cast<int>(found - tails.begin());
            if (found == tails.end()) tails.push_back({appended.ids, appended.positions});
        }
    }
};

PrefillRequest request_for(const Prompt& prompt, const Runs& runs, const Tails& tails, int window,
                           trace::PromptRecord* record, bool needs_window, bool is_kept, int64_t room) {
    PrefillRequest request;
    request.ids = std::span<const int32_t>(prompt.ids).first(static_cast<size_t>(prompt.n_visible()));
    request.needs = union_of(runs);
    request.entry_layers = entry_layers_of(runs);
    // The full run's window must not depend on the other policies.
    if (needs_window) request.needs.window_queries = std::max(window, request.needs.window_queries);
    if (is_kept) {
        request.needs.window_queries =
            std::max({window, request.needs.window_queries, PrefillObservations::least_window});
        request.needs.attention_sums = true;
        request.needs.entries = true;
    }
    request.projections = record;
    request.tails = tails.tails;
    request.keep_cache = false;
    const bool grows = std::any_of(runs.begin(), runs.end(), [](const auto& run) {
        return !run->failed() && (run->is_full() || run->awaits_answer());
    });
    request.room = grows ? room : 0;
    const bool nobody_reads_whole = std::all_of(runs.begin(), runs.end(), [](const auto& run) {
        return run->failed() || run->filters() || run->reads_in_chunks();
    });
    if (nobody_reads_whole && !record) {
        request.n_layers = 0;
        for (const auto& run : runs) {
            if (!run->failed()) request.n_layers = std::max(request.n_layers, run->filter_layer() + 1);
        }
    }
    return request;
}

LayersAsked asked_of(const PrefillLayer& layer) {
    LayersAsked all{layer.prompt.asked()};
    for (const auto& tail : layer.tails) all.push_back(tail->asked());
    return all;
}

}  // namespace

void Compression::load_classifier(ActiveRun& run) {
    if (run.failed() || !run.classification()) return;
    auto& classifier = classifiers_[run.classification()->model];
    if (classifier) return;
    try {
        classifier = std::make_unique<TokenClassifier>(run.classification()->model, progress_);
    } catch (const checkpoint::CheckpointError& error) {
        run.fail(error.what());
    }
}

/// Selects tokens with classifiers. Runs with equal requests share one classification.
void Compression::classify(const Prompt& prompt, Runs& runs) {
    struct Answer {
        policies::TokenClassifierSettings question;
        std::vector<float> probabilities;
        double seconds;
    };
    std::vector<Answer> answers;
    for (auto& run : runs) {
        load_classifier(*run);
        if (run->failed() || !run->classification()) continue;
        const auto& question = *run->classification();
        auto answer = std::find_if(answers.begin(), answers.end(),
                                   [&](const Answer& known) { return known.question == question; });
        if (answer == answers.end()) {
            const Stopwatch watch;
            const std::string error = catch_single_run_failure([&] {
                answers.push_back(
                    {question,
                     prompt_probabilities(model_, prompt, *classifiers_.at(question.model), question, progress_), 0});
            });
            if (!error.empty()) {
                run->fail(error);
                continue;
            }
            answer = answers.end() - 1;
            answer->seconds = watch.seconds();
            timings_.prefill_s += answer->seconds;
        }
        run->record.prefill_s = answer->seconds;
        policies::LayerObservations observations;
        observations.shape = transformer().shape();
        observations.n_tokens = prompt.n_visible();
        observations.token_probabilities = answer->probabilities;
        run->filter(observations);
    }
}

/// Computes the observations that policies requested of the preceding layer, before the device starts the next layer.
void Compression::work_out(PrefillLayer& layer, const LayersAsked& before, Runs& runs) {
    const Stopwatch watch;
    layer.prompt.work_out(before[0]);
    for (size_t tail = 0; tail < layer.tails.size(); ++tail) layer.tails[tail]->work_out(before[tail + 1]);
    const auto decides = [](const auto& run) { return !run->failed() && !run->is_full(); };
    const double each = watch.seconds() / static_cast<double>(std::count_if(runs.begin(), runs.end(), decides));
    for (auto& run : runs)
        if (decides(run)) run->add_select_seconds(each);
}

/// Shows a layer to each run that decides layer by layer, and returns the runs with a pending decision.
std::vector<ActiveRun*> Compression::show_layer(PrefillLayer& layer, Runs& runs, std::span<const int> tail_of_run,
                                                std::span<const float> attention) {
    std::vector<ActiveRun*> deciding;
    for (size_t i = 0; i < runs.size(); ++i) {
        auto& run = *runs[i];
        if (run.failed() || run.reads_in_chunks()) continue;
        progress_.throw_if_stopped();
        const int tail = tail_of_run[i];
        auto& observations = tail >= 0 ? *layer.tails[static_cast<size_t>(tail)] : layer.prompt;
        if (run.looks_ahead()) {
            run.begin_draft(observations, layer.dense);
        } else if (run.filters()) {
            if (layer.layer == run.filter_layer()) run.filter(observations);
        } else if (!run.awaits_answer()) {
            run.begin_decision(observations, layer.dense, attention);
        }
        if (run.has_decision()) deciding.push_back(&run);
    }
    return deciding;
}

Held Compression::compress(const Prompt& prompt, Runs& runs, int64_t room, trace::PromptRecord* record,
                           std::span<const float> known_attention,
                           std::unique_ptr<PrefillObservations>* prefill_observations) {
    classify(prompt, runs);
    const Tails tails(runs);
    const int window = options_.window;
    PrefillRequest request = request_for(prompt, runs, tails, window, record, record || on_window_attention,
                                         prefill_observations != nullptr, room);
    double recording = 0;
    std::shared_ptr<const std::vector<float>> modes;
    if (record) {
        const Stopwatch watch;
        WithoutPauses steady(
            progress_);  // does not pause, because another job on this model may wait for the shared result
        modes = model_.memo()->get<std::vector<float>>(
            "projection modes", [&] { return projection_eigenvectors(transformer(), model_.fingerprint(), steady); });
        request.modes = *modes;
        recording += watch.seconds();
    }
    std::unique_ptr<PrefillObservations> kept;
    if (prefill_observations)
        kept =
            std::make_unique<PrefillObservations>(transformer().shape(), model_.fingerprint(),
                                                  std::vector<int32_t>(request.ids.begin(), request.ids.end()), window);

    Held held;
    const bool holds = std::any_of(runs.begin(), runs.end(), [](const auto& run) {
        return !run->failed() && (run->looks_ahead() || run->awaits_answer());
    });

    std::vector<ActiveRun*> deciding;
    LayersAsked asked;
    const auto show = [&](PrefillLayer& layer) {
        const auto attention =
            slice_layer_attention(record ? std::span<const float>(record->window_attention) : known_attention,
                                  static_cast<size_t>(layer.layer), prompt.n_visible(), transformer().shape());
        deciding = show_layer(layer, runs, tails.of_run, attention);
    };
    const auto look = [&](PrefillLayer& layer) {
        if (on_window_attention)
            on_window_attention(layer.prompt.window_attention(window, 0.0f, policies::SoftmaxRange::visible));
        if (record) {
            const Stopwatch watch;
            record_layer_measures(layer.prompt, window, *record);
            recording += watch.seconds();
        }
        if (kept) {
            const Stopwatch watch;
            kept->add_layer(layer.prompt, layer.dense);
            recording += watch.seconds();
        }
    };
    const auto decide = [&](PrefillLayer& layer) {
        timings_.select_s += finish_pending_decisions(deciding, transformer().backend(), progress_);
        if (holds) held.push_back(std::make_unique<ObservedLayer>(layer.prompt, layer.dense));
    };
    OnLayer on_layer = [&](PrefillLayer& layer) { look(layer), show(layer), decide(layer); };
    OnLayer meanwhile;
    // An isolated run holds one layer at a time, as a server would.
    if (!transformer().device().is_processor() && !options_.isolated) {
        on_layer = [&](PrefillLayer& layer) {
            look(layer);
            layer.layer == 0 ? show(layer) : work_out(layer, asked, runs);
        };
        meanwhile = [&](PrefillLayer& layer) {
            if (layer.layer > 0) show(layer);
            decide(layer);
            asked = asked_of(layer);
        };
    }
    auto result =
        request.n_layers == 0 ? PrefillResult{} : prefill(transformer(), request, on_layer, progress_, meanwhile);
    if (prefill_observations) *prefill_observations = std::move(kept);
    timings_.prefill_s += result.seconds;
    timings_.record_s += result.recording_seconds + recording;
    if (request.n_layers != 0) timings_.n_prompt_tokens += prompt.n_visible();
    if (record) {
        record->window = std::min<int64_t>(window, prompt.n_visible());
        record->last_logits = recordable_logits(result.last_logits);
        if (options_.alignment) record_alignment(request.ids, *record);
        known_attention = record->window_attention;
    }
    if (holds) decide_by_lookahead(prompt, runs, held, result.last_logits, known_attention);
    read_in_chunks(prompt, runs, known_attention);
    if (!finish_runs(prompt, runs, room, result, known_attention)) held.clear();
    return held;
}

bool Compression::finish_runs(const Prompt& prompt, Runs& runs, int64_t room, const PrefillResult& result,
                              std::span<const float> attention) {
    bool awaits = false;
    for (auto& run : runs) {
        if (run->failed()) continue;
        if (run->reads_in_chunks()) {
            timings_.select_s += run->select_seconds_alone();
            continue;
        }
        if (!run->classification()) run->record.prefill_s = result.seconds;
        awaits = awaits || run->awaits_answer();
        if (run->awaits_answer()) {
            run->set_first_logits(result.last_logits);
            continue;
        }
        if (!run->filters()) {
            run->finish_prompt(result.last_logits);
        } else if (const auto error = catch_single_run_failure([&] { run_again(prompt, *run, room, attention); });
                   !error.empty()) {
            run->fail("reading the filtered prompt: " + error);
        }
        timings_.select_s += run->select_seconds_alone();
    }
    return awaits;
}

void Compression::record_alignment(std::span<const int32_t> ids, trace::PromptRecord& record) {
    const Stopwatch watch;
    GradientAlignment alignment = gradient_alignment(transformer(), ids, progress_);
    record.gradient_alignment_c11 = std::move(alignment.c11);
    record.gradient_alignment_c12 = std::move(alignment.c12);
    record.gradient_alignment_c22 = std::move(alignment.c22);
    timings_.record_s += watch.seconds();
}

void Compression::decide_by_lookahead(const Prompt& prompt, Runs& runs, const Held& held,
                                      std::span<const float> last_logits, std::span<const float> attention) {
    std::vector<ActiveRun*> looking;
    std::vector<RunCache*> drafts;
    std::vector<int64_t> n_tokens;
    for (const auto& run : runs) {
        if (run->failed() || !run->looks_ahead()) continue;
        looking.push_back(run.get());
        drafts.push_back(&run->draft_cache());
        n_tokens.push_back(run->lookahead());
    }
    const Stopwatch watch;
    const auto lookaheads = look_ahead(transformer(), drafts, n_tokens, prompt.n_visible(), last_logits, progress_);
    timings_.decode_s += watch.seconds();
    for (size_t i = 0; i < looking.size(); ++i) {
        if (!lookaheads[i].error.empty()) looking[i]->fail("looking ahead: " + lookaheads[i].error);
        looking[i]->record.lookahead_ids = lookaheads[i].ids;
        looking[i]->drop_draft();
    }
    for (size_t layer = 0; layer < held.size(); ++layer) {
        auto& observations = held[layer]->observations;
        std::vector<ActiveRun*> deciding;
        for (size_t i = 0; i < looking.size(); ++i) {
            if (looking[i]->failed()) continue;
            progress_.throw_if_stopped();
            const auto n = static_cast<int>(n_tokens[i]);
            DenseLayer own{.keys = lookaheads[i].keys[layer], .device = transformer().device()};
            if (looking[i]->reads_entries()) own.bring_to_processor();
            observations.set_appended(lookaheads[i].queries[layer], own.keys_view(), n, n);
            looking[i]->begin_decision(
                observations, held[layer]->dense,
                slice_layer_attention(attention, layer, prompt.n_visible(), transformer().shape()));
            if (looking[i]->has_decision()) deciding.push_back(looking[i]);
        }
        timings_.select_s += finish_pending_decisions(deciding, transformer().backend(), progress_);
        observations.forget_appended();
    }
}

void Compression::read_in_chunks(const Prompt& prompt, Runs& runs, std::span<const float> attention) {
    std::vector<ActiveRun*> members;
    std::vector<ChunkedRun> chunked;
    for (const auto& run : runs) {
        if (run->failed() || !run->reads_in_chunks()) continue;
        members.push_back(run.get());
        chunked.push_back(run->chunked(options_.record && !options_.isolated));
    }
    if (members.empty()) return;
    const Stopwatch watch;
    const auto ids = std::span<const int32_t>(prompt.ids).first(static_cast<size_t>(prompt.n_visible()));
    engine::read_in_chunks(transformer(), ids, chunked, progress_);
    double merging = 0;
    for (const ChunkedRun& run : chunked) merging += run.merge_seconds;
    const double seconds = watch.seconds() - merging;
    timings_.prefill_s += seconds;
    timings_.n_prompt_tokens += prompt.n_visible() * static_cast<int64_t>(members.size());
    for (size_t i = 0; i < members.size(); ++i) {
        members[i]->record.prefill_s = seconds;
        members[i]->adopt_chunked(chunked[i], attention);
        if (!members[i]->failed()) members[i]->finish_prompt(chunked[i].last_logits);
    }
}

void Compression::run_again(const Prompt& prompt, ActiveRun& run, int64_t room, std::span<const float> attention) {
    std::vector<int32_t> ids;
    for (const uint32_t position : run.filtered()) ids.push_back(prompt.ids[position]);
    PrefillRequest request;
    request.ids = ids;
    request.room = room;
    auto result = prefill(transformer(), request, nullptr, progress_);
    timings_.prefill_s += result.seconds;
    run.record.prefill_s += result.seconds;
    run.adopt_filtered(result.cache, attention);
    run.finish_prompt(result.last_logits);
}

}  // namespace kvscope::engine
