#include "engine/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "engine/active_run.h"
#include "engine/answer_phases.h"
#include "engine/answer_writer.h"
#include "engine/calibration.h"
#include "engine/common/engine_error.h"
#include "engine/common/memory.h"
#include "engine/common/stopwatch.h"
#include "engine/compression.h"
#include "engine/decode/answer_attention.h"
#include "engine/device/catch_single_run_failure.h"
#include "engine/device/cpu_tensor_memory_pool.h"
#include "engine/prefill/recorded_measures.h"
#include "engine/run_records.h"
#include "engine/run_requirements.h"

namespace kvscope::engine {
namespace {

struct Question {
    int number;  ///< index of the prompt
    const Prompt& prompt;
};
using Questions = std::span<const Question>;

/// Sums the attention over the answers to all questions. The order of the questions does not affect the result.
std::vector<float> sum_of_attention(std::span<const FullAnswer> answers) {
    size_t n = 0;
    for (const FullAnswer& answer : answers) n = std::max(n, answer.attention.size());
    std::vector<float> sum(n), terms;
    for (size_t i = 0; i < n; ++i) {
        terms.clear();
        for (const FullAnswer& answer : answers)
            if (i < answer.attention.size()) terms.push_back(answer.attention[i]);
        std::sort(terms.begin(), terms.end());
        for (const float term : terms) sum[i] += term;
    }
    return sum;
}

/// The full run's answer to a question. Isolated runs are compared with it.
struct RecordedReference {
    std::optional<FullReference> answer;  ///< empty if the full run failed
    std::vector<float> attention;         ///< (L, G, N) of the answer; empty if not recorded
};

trace::PromptRecord record_of(const Prompt& prompt, const Model& model, std::optional<int> context_of) {
    trace::PromptRecord record;
    record.name = prompt.name;
    record.text = prompt.text;
    record.question = prompt.question;
    record.chat_template = prompt.chat_template;
    record.n_tokens = static_cast<int64_t>(prompt.ids.size());
    record.n_context = prompt.n_context;
    record.query_aware = prompt.query_aware;
    record.eos_ids = model.end_ids();
    record.context_of = context_of;
    if (prompt.n_system > 0) record.n_system = prompt.n_system;
    record.token_ids = prompt.ids;
    record.token_text = prompt.token_text;
    return record;
}

}  // namespace

struct Experiment::Impl {
    const Experiment& owner;
    const Model& model;
    std::vector<RunPlan> plans;
    ExperimentOptions options;
    Progress& progress;
    Timings timings;
    std::unique_ptr<PrefillObservations> live;
    std::vector<std::unique_ptr<Conversation>> conversations;
    std::set<size_t> told_impossible;  ///< plans whose obstacle has been reported
    DeduplicatedScores scores;
    Compression compression{model, options, timings, progress};
    AnswerPhases answering{model, options, timings, progress};
    ResultWriter results;
    AnswerTools tools{model, options, owner, answering, results, progress};

    Impl(const Experiment& the_owner, const Model& the_model, std::vector<RunPlan> the_plans,
         ExperimentOptions the_options, trace::Writer* writer, Progress& the_progress)
        : owner(the_owner),
          model(the_model),
          plans(std::move(the_plans)),
          options(std::move(the_options)),
          progress(the_progress),
          results(owner, writer, plans.size(), timings) {}

    const Transformer& transformer() const { return model.transformer(); }

    int64_t space_after(Questions questions) const {
        int64_t most = 0;
        for (const auto& [number, prompt] : questions)
            most = std::max(most, static_cast<int64_t>(prompt.ids.size()) - prompt.n_visible());
        return most + options.n_new;
    }

    bool has_answers(Questions questions, size_t run) const {
        return std::ranges::all_of(questions, [&](const Question& question) {
            return results.has_run(question.number, static_cast<int>(run));
        });
    }

    /// Returns the runs that the trace lacks, and always the full run, with which the others are compared.
    Runs plan_runs(Questions questions) {
        const Prompt& prompt = questions[0].prompt;
        Runs runs;
        for (size_t i = 0; i < plans.size(); ++i) {
            if (i > 0 && has_answers(questions, i)) continue;
            runs.push_back(std::make_unique<ActiveRun>(model, plans[i], static_cast<int>(i), prompt, options, scores,
                                                       progress.stop_token()));
            compression.load_classifier(*runs.back());
        }
        std::vector<std::string> obstacles(plans.size());
        for (const auto& run : runs)
            if (run->failed()) obstacles[static_cast<size_t>(run->index())] = run->record.message;
        if (!options.require_possible_run) return runs;  // Samples of a task report their failed runs.
        // Later prompts must not end the command, because a repeated command would end at the same prompt.
        if (questions[0].number == 0) require_any_possible_run(prompt, plans, obstacles);
        for (size_t i = 1; i < plans.size(); ++i)
            if (!obstacles[i].empty() && told_impossible.insert(i).second)
                progress.message(fmt::format("{} cannot run on {}: {}", plans[i].asked(), prompt.name, obstacles[i]));
        return runs;
    }

    /// Lets policies analyze the weights, outside the measured time of runs.
    void prepare(const Runs& runs) {
        for (const auto& run : runs) {
            if (run->failed() || !run->needs().calibration) continue;
            const std::string error = catch_single_run_failure([&] { find_or_make_calibration(model, progress); });
            if (!error.empty()) run->fail(error);
        }
        int64_t steps = 0, done = 0;
        for (const auto& run : runs) steps += run->n_prepared();
        if (steps == 0) return;
        progress.begin("weights", steps, "layers");
        for (const auto& run : runs) {
            const int n_layers = run->n_prepared();
            for (int layer = 0; layer < n_layers; ++layer) {
                progress.throw_if_stopped();
                run->prepare(layer);
                progress.advance(++done);
            }
        }
    }

    std::vector<FullAnswer> decide_by_answer(Questions questions, Runs& runs, const Held& held,
                                             std::span<const float> attention) {
        const int64_t n = questions[0].prompt.n_visible();
        const auto waiting = [](const auto& run) { return !run->failed() && run->awaits_answer(); };
        const std::vector<float> logits = (*std::find_if(runs.begin(), runs.end(), waiting))->first_logits();
        std::vector<FullAnswer> answers;
        std::string failed;
        for (const auto& [number, prompt] : questions) {
            RunCache full(transformer(), policies::Granularity::kv_head, policies::Positions::prompt, false);
            for (size_t layer = 0; layer < held.size(); ++layer)
                full.adopt(static_cast<int>(layer), held[layer]->dense, n);
            std::vector<AnswerStart> start;
            start.push_back({std::move(full), {}, n, logits});
            answering.read_question(prompt, start);
            FullAnswer& answer = answers.emplace_back();
            answer.generation = std::move(answering.decode(start, nullptr)[0]);
            answer.error = answer.generation.error;
            if (answer.error.empty())
                answer.error = catch_single_run_failure([&] {
                    answer.reference = answering.reference(start[0], answer.generation, n, &answer.attention, progress);
                });
            if (failed.empty()) failed = answer.error;
        }
        const std::vector<float> sum = sum_of_attention(answers);
        for (auto& run : runs) {
            if (!waiting(run)) continue;
            if (!failed.empty()) {
                run->fail("its policy needs the full cache's answer, which failed: " + failed);
                continue;
            }
            for (size_t layer = 0; layer < held.size() && !run->failed(); ++layer) {
                auto& observations = held[layer]->observations;
                observations.answer_attention = slice_layer_attention(sum, layer, n, transformer().shape());
                run->decide(observations, held[layer]->dense,
                            slice_layer_attention(attention, layer, n, transformer().shape()));
            }
            if (run->failed()) continue;
            run->finish_prompt(logits);
            timings.select_s += run->select_seconds_alone();
        }
        return answers;
    }

    /// Returns the record of question q. Its context data refer to the first question's record.
    trace::PromptRecord question_record(Questions questions, size_t q, const trace::PromptRecord& context,
                                        std::span<const AnswerStart> starts) {
        trace::PromptRecord record = context;
        if (q > 0) {
            record = record_of(questions[q].prompt, model, questions[0].number);
            record.window = context.window;
        }
        record.last_logits.clear();  // these are the logits after the context
        if (options.record && !starts.empty()) record.last_logits = recordable_logits(starts[0].logits);
        if (options.stores_only_measures()) omit_values_of_tokens(record);
        return record;
    }

    bool is_left(int prompt, const ActiveRun& run) const {
        return run.is_full() || !results.has_run(prompt, run.index());
    }

    void run_shared(Questions questions) {
        live.reset();
        conversations.clear();
        const auto shared_prompt = std::make_shared<const Prompt>(
            questions[0].prompt);  // shared with the conversations that keep_caches() makes
        Runs runs = plan_runs(questions);
        prepare(runs);
        trace::PromptRecord context = record_of(questions[0].prompt, model, std::nullopt);
        compression.on_window_attention = owner.on_window_attention;
        Held held =
            compression.compress(*shared_prompt, runs, space_after(questions), options.record ? &context : nullptr, {},
                                 options.keep_prefill ? &live : nullptr);
        std::vector<FullAnswer> known;
        if (!held.empty()) known = decide_by_answer(questions, runs, held, context.window_attention);
        held.clear();
        std::vector<Answered> answered(plans.size());
        for (size_t q = 0; q < questions.size(); ++q) {
            const int index = questions[q].number;
            const bool is_last = q + 1 == questions.size();
            if (results.is_finished(index)) continue;
            if (q > 0 && owner.on_begun) owner.on_begun(index);
            std::vector<ActiveRun*> alive;
            for (const auto& run : runs) {
                if (!run->failed() && is_left(index, *run)) alive.push_back(run.get());
            }
            auto starts = answering.read_question(questions[q].prompt, alive, is_last);
            const trace::PromptRecord record = question_record(questions, q, context, starts);
            results.write(index, record);
            if (owner.on_prompt) owner.on_prompt(index, record);
            for (const auto& run : runs) {
                if (run->failed()) {
                    if (!results.has_run(index, run->index())) results.write(index, run->index(), run->record);
                } else if (owner.on_kept && is_left(index, *run)) {
                    owner.on_kept(index, run->index(), run->whole_record());
                }
            }
            AnswerWriter writing(tools, index, alive, starts, shared_prompt->n_visible(), answered);
            writing.decode(known.empty() ? nullptr : &known[q]);
            AnswerPhases::give_back(alive, starts);
        }
        if (options.keep_caches) keep_caches(runs, answered, shared_prompt);
    }

    void keep_caches(const Runs& runs, std::vector<Answered>& answered, const std::shared_ptr<const Prompt>& prompt) {
        conversations.resize(plans.size());
        for (const auto& run : runs) {
            const auto i = static_cast<size_t>(run->index());
            if (run->failed() || answered[i].failed) continue;
            conversations[i] =
                std::make_unique<Conversation>(run->record.label, std::move(run->cache()), run->take_policy(),
                                               run->position(), prompt, std::move(answered[i].text));
        }
    }

    void run_isolated(Questions questions) {
        {
            const Runs runs = plan_runs(questions);
            prepare(runs);
        }
        std::vector<RecordedReference> references(questions.size());
        std::optional<RunCache> full_cache;
        trace::PromptRecord context = record_of(questions[0].prompt, model, std::nullopt);
        if (options.record) {
            Runs nobody;
            compression.compress(questions[0].prompt, nobody, 0, &context, {});
        }
        for (size_t i = 0; i < plans.size(); ++i) {
            if (i > 0 && has_answers(questions, i)) continue;
            run_alone(questions, i, context, references, full_cache);
        }
    }

    void run_alone(Questions questions, size_t plan, const trace::PromptRecord& context,
                   std::vector<RecordedReference>& references, std::optional<RunCache>& full_cache) {
        const Prompt& first = questions[0].prompt;
        reset_peak_memory();
        const uint64_t before = resident_bytes();
        const Stopwatch watch;
        Runs runs;
        runs.push_back(std::make_unique<ActiveRun>(model, plans[plan], static_cast<int>(plan), first, options, scores,
                                                   progress.stop_token()));
        auto& run = *runs[0];
        if (!run.failed()) {
            const Held held =
                compression.compress(first, runs, space_after(questions), nullptr, context.window_attention);
            if (!held.empty()) decide_by_answer(questions, runs, held, context.window_attention);
        }
        for (size_t q = 0; q < questions.size(); ++q) {
            const int index = questions[q].number;
            if (run.failed()) {
                results.write(index, question_record(questions, q, context, {}));
                if (!results.has_run(index, run.index())) results.write(index, run.index(), run.record);
                continue;
            }
            if (!is_left(index, run)) continue;
            ActiveRun* alive[] = {&run};
            auto starts = answering.read_question(questions[q].prompt, alive, q + 1 == questions.size());
            const double first_token = watch.seconds();
            answering.add_copies(starts);
            const bool is_alone = starts.size() == 1;
            const auto prompt_record = [&] { return question_record(questions, q, context, starts); };
            if (owner.on_prompt && run.is_full()) owner.on_prompt(index, prompt_record());
            if (owner.on_kept) owner.on_kept(index, run.index(), run.whole_record());
            const auto generation =
                std::move(answering.decode(starts, is_alone ? make_token_callback(alive, owner) : nullptr, nullptr,
                                           is_alone ? make_switch_callback(alive, owner) : nullptr)[0]);
            const uint64_t peak = peak_resident_bytes();
            if (owner.on_answered) owner.on_answered(run.index());
            if (q == 0 || run.is_full()) results.write(index, prompt_record());
            ScoreBuffer room;
            auto record = make_run_record_with_answer(model, run, generation, room, progress.stop_token());
            if (q == 0) {
                record.first_token_s = first_token;
                // The peak covers only the processor's memory.
                record.peak_bytes = model.transformer().device().is_processor() && peak > before ? peak - before : 0;
            }
            record.decode_s = generation.seconds;
            if (generation.seconds > 0 && !generation.ids.empty())
                record.decode_tokens_per_s =
                    static_cast<double>(starts.size() * (generation.ids.size() - 1)) / generation.seconds;
            if (options.compare && generation.error.empty())
                compare_alone(run, starts[0], generation, first.n_visible(), full_cache, references[q], record);
            if (options.stores_only_measures()) omit_values_of_tokens(record);
            if (!results.has_run(index, run.index())) results.write(index, run.index(), record);
            AnswerPhases::give_back(alive, starts);
        }
        if (run.is_full() && options.record && options.compare && !options.stores_only_measures() && !run.failed())
            full_cache = std::move(run.cache());
    }

    /// @param full_cache the full run's cache with the prompt, if kept
    /// @param reference set by the full run, which comes first; empty if the full run failed
    void compare_alone(const ActiveRun& run, AnswerStart& start, const Generation& generation, int64_t n_context,
                       const std::optional<RunCache>& full_cache, RecordedReference& reference,
                       trace::RunRecord& record) {
        if (run.is_full()) {
            std::vector<float> attention;
            const std::string error = catch_single_run_failure([&] {
                reference.answer =
                    answering.reference(start, generation, n_context, options.record ? &attention : nullptr, progress);
            });
            if (!error.empty()) {
                record_failure(record, "reading its answer back: " + error);
                return;
            }
            if (!attention.empty()) reference.attention = mean_over_groups(attention, transformer().shape(), n_context);
            add_comparison(record, comparison_of_full_with_itself(transformer(), *reference.answer));
        } else {
            AnswerStart* const own[] = {&start};
            if (!reference.answer) return mark_as_not_compared(record);
            auto comparisons = answering.compare(*reference.answer, own, progress);
            const ActiveRun* const runs[] = {&run};
            if (full_cache)
                answering.add_attention_lost(*full_cache, *reference.answer, n_context, runs, comparisons, progress);
            add_comparison(record, comparisons[0]);
        }
        add_answer_attention(record, reference.attention, transformer().shape(), n_context, options);
    }
};

std::vector<std::vector<int>> group_by_shared_context(std::span<const Prompt> prompts) {
    std::vector<std::vector<int>> groups;
    std::unordered_map<std::string_view, size_t> places;
    for (size_t i = 0; i < prompts.size(); ++i) {
        const Prompt& prompt = prompts[i];
        size_t place = groups.size();
        if (!prompt.query_aware) {
            const auto ids = std::span(prompt.ids).first(static_cast<size_t>(prompt.n_visible()));
            const std::string_view context(reinterpret_cast<const char*>(ids.data()), ids.size_bytes());
            place = places.emplace(context, place).first->second;
        }
        if (place == groups.size()) groups.emplace_back();
        groups[place].push_back(static_cast<int>(i));
    }
    return groups;
}

Experiment::Experiment(const Model& model, std::vector<RunPlan> plans, const ExperimentOptions& options,
                       trace::Writer& writer, Progress& progress)
    : Experiment(model, std::move(plans), options, &writer, progress) {}

Experiment::Experiment(const Model& model, std::vector<RunPlan> plans, const ExperimentOptions& options,
                       Progress& progress)
    : Experiment(model, std::move(plans), options, nullptr, progress) {}

Experiment::Experiment(const Model& model, std::vector<RunPlan> plans, const ExperimentOptions& options,
                       trace::Writer* writer, Progress& progress)
    : impl_(std::make_unique<Impl>(*this, model, std::move(plans), options, writer, progress)) {
    if (impl_->plans.empty() || !impl_->plans[0].spec.definition->is_full())
        throw std::logic_error("an experiment's first run must be full");
    if (const std::string problem = find_option_problem(options); !problem.empty()) throw UsageError(problem);
    if (options.isolated && (options.keep_prefill || options.keep_caches))
        throw UsageError("isolated runs keep no prefill and no caches: use the shared mode");
}

Experiment::~Experiment() = default;

void Experiment::run(std::span<const Prompt> prompts) {
    // Memory kept from one isolated run would count in the peak of the next run.
    std::optional<TensorMemoryPool> memory;
    if (!impl_->options.isolated) memory.emplace();
    const Stopwatch watch;
    if (!impl_->results.has_model()) {
        trace::ModelRecord record;
        static_cast<trace::ModelAttributes&>(record) = impl_->model.attributes();
        impl_->results.write(record);
    }
    for (const std::vector<int>& numbers : group_by_shared_context(prompts)) {
        if (is_skipped && std::ranges::all_of(numbers, is_skipped)) continue;
        if (!std::ranges::all_of(numbers, [&](int number) { return impl_->results.is_finished(number); })) {
            std::vector<Question> questions;
            for (const int number : numbers) questions.push_back({number, prompts[static_cast<size_t>(number)]});
            if (on_begun) on_begun(numbers.front());
            impl_->options.isolated ? impl_->run_isolated(questions) : impl_->run_shared(questions);
        }
        if (on_finished) on_finished(numbers);
    }
    impl_->timings.total_s += watch.seconds();
}

std::unique_ptr<PrefillObservations> Experiment::take_prefill() { return std::move(impl_->live); }

std::vector<std::unique_ptr<Conversation>> Experiment::take_caches() { return std::exchange(impl_->conversations, {}); }

const Timings& Experiment::timings() const { return impl_->timings; }

}  // namespace kvscope::engine
