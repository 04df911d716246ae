#include "engine/task_evaluation.h"

#include <algorithm>
#include <exception>
#include <span>
#include <utility>
#include <vector>

#include "analysis/measures/result_row.h"
#include "analysis/measures/wrong_answer.h"
#include "common/find_phrases.h"
#include "common/json.h"
#include "engine/common/engine_error.h"
#include "engine/common/stopwatch.h"

namespace kvscope::engine {
namespace {

/// Finds the causes of wrong answers to a sample while its runs end, because only then their scores are in memory.
class Causes {
 public:
    Causes(const Model& model, const Prompt& prompt) : model_(model), prompt_(prompt) {}

    /// @param attention (H, N) of the window in the next layer
    void observe(std::span<const float> attention) {
        peaks_.resize(prompt_.answer_tokens.size());
        analysis::raise_peaks(attention, n_layers_seen_++, n_heads(), prompt_.answer_tokens, peaks_);
    }

    void set_cause(trace::ResultRow& row, const trace::RunRecord& record) const {
        if (record.status != trace::schema::run::status_complete || record.is_full() || analysis::is_right(row)) return;
        const analysis::HeldTokens held(record, static_cast<size_t>(model_.attributes().n_layers),
                                        static_cast<size_t>(prompt_.n_visible()));
        analysis::set_cause(row, {record, held.sets(), prompt_.answer_tokens, peaks_, n_heads()});
    }

 private:
    [[nodiscard]] size_t n_heads() const { return static_cast<size_t>(model_.attributes().n_heads); }

    const Model& model_;
    const Prompt& prompt_;
    std::vector<analysis::AttentionPeak> peaks_;  ///< one per token of the answers; empty if not observed
    size_t n_layers_seen_ = 0;
};

trace::ResultRow row_of(const Model& model, const Task& task, const PreparedSample& sample, const RunPlan& plan,
                        const trace::RunRecord& record) {
    trace::PromptAttributes prompt;
    prompt.name = sample.id;
    prompt.text = sample.prompt.text;
    prompt.n_tokens = static_cast<int64_t>(sample.prompt.ids.size());
    prompt.n_context = sample.prompt.n_context;
    prompt.query_aware = sample.prompt.query_aware;
    if (sample.prompt.n_system > 0) prompt.n_system = sample.prompt.n_system;
    // Evaluations do not record the attention of the full run's answer, so recall is unknown.
    trace::ResultRow row =
        analysis::result_row(model.attributes(), prompt, record, trace::ResultRow::unknown, sample.prompt.evidence);
    row.requested_budget = plan.budget.text();
    row.sample_hash = sample.hash();
    row.context_hash = sample.prompt.context_hash;
    row.length = sample.length;
    row.depth = sample.depth;
    row.subset = sample.subset;
    row.batch = sample.batch;
    add_score(row, sample.scorer.value_or(task.scorer), sample.answers);
    return row;
}

/// Whether the run's kept entries depend on the answers to all questions of the context.
bool goes_by_answers(const RunPlan& plan) {
    try {
        return plan.spec.create()->needs().answer_attention;
    } catch (const std::exception&) {
        return false;  // the run fails with this message
    }
}

/// Whether the samples ask about the same context, hide their questions from policies, and limit answers alike.
bool have_one_cache(const PreparedSample& a, const PreparedSample& b) {
    const auto context = [](const PreparedSample& sample) {
        return std::span(sample.prompt.ids).first(static_cast<size_t>(sample.prompt.n_visible()));
    };
    return !a.prompt.query_aware && !b.prompt.query_aware && a.n_new == b.n_new && a.end_ids == b.end_ids &&
           std::ranges::equal(context(a), context(b));
}

}  // namespace

void add_score(trace::ResultRow& row, const Scorer& scorer, std::span<const std::string> answers) {
    row.answers_json = nlohmann::json(answers).dump();
    row.metric = scorer.metric;
    row.scored_as = scorer.scored_as;
    const bool is_complete = row.status == trace::schema::run::status_complete;
    row.score = is_complete || answers.empty() ? scorer.score(row.prediction, answers) : 0;
}

namespace {

/// Returns the places in the evidence where an answer occurs as whole words, and each part of the evidence without an
/// answer, such as a fact from which the answer follows.
std::vector<ByteRange> answers_within_spans(const TaskSample& sample) {
    std::vector<ByteRange> places;
    for (const auto& [begin, end] : sample.spans) {
        const auto found = find_phrases(std::string_view(sample.context).substr(begin, end - begin), sample.answers);
        if (found.empty()) places.emplace_back(begin, end);
        for (const auto& [first, last] : found) places.emplace_back(begin + first, begin + last);
    }
    return places;
}

}  // namespace

std::vector<PreparedSample> prepare_samples(const Model& model, const Task& task, const TaskOptions& options,
                                            PromptOptions prompt, bool in_both_ways,
                                            std::vector<std::string>* left_out) {
    const bool use_template = prompt.use_template && task.applies_template;
    const int64_t n_new = prompt.n_new;
    const SampleRequest request{task,         options,     model.tokenizer(), model.config().context_length,
                                prompt.n_new, prompt.stop, left_out};
    std::vector<PreparedSample> samples;
    for (auto& sample : task.make_samples(request)) {
        if (n_new != task.n_new) sample.n_new = 0;
        prompt.name = sample.id;
        prompt.separator = sample.separator;
        prompt.spans = sample.spans;
        prompt.answer_spans = answers_within_spans(sample);
        prompt.use_template = use_template && sample.applies_template;
        prompt.n_new = sample.n_new > 0 ? sample.n_new : n_new;
        add_unless_unusable(request, [&] {
            if (in_both_ways) prompt.query_aware = true;
            Prompt tokenized = tokenize_prompt(model, sample.context, sample.question, prompt);
            if (sample.length == 0) sample.length = static_cast<int64_t>(tokenized.ids.size());
            samples.push_back({sample, std::move(tokenized)});
            if (!in_both_ways || sample.question.empty()) return;
            prompt.query_aware = false;
            sample.number += hidden_question_offset;
            samples.push_back({sample, tokenize_prompt(model, sample.context, sample.question, prompt)});
        });
    }
    if (samples.empty() && left_out && !left_out->empty()) throw UsageError(left_out->front());
    return samples;
}

void evaluate_task(
    const Model& model, const Task& task, std::span<const PreparedSample> samples, const std::vector<RunPlan>& plans,
    const ExperimentOptions& options, trace::Writer& writer, Progress& progress,
    const std::function<void(size_t sample, std::span<const trace::ResultRow>, double seconds)>& on_sample,
    const std::function<void(size_t sample)>& on_begun) {
    if (!writer.has_model()) {
        trace::ModelRecord record;
        static_cast<trace::ModelAttributes&>(record) = model.attributes();
        writer.write_model(record);
    }
    ExperimentOptions how = options;
    how.require_possible_run = false;
    const bool share_caches = !task.measures_time && std::ranges::none_of(plans, goes_by_answers);
    bool is_warm = !task.measures_time;
    for (size_t i = 0, n = 1; i < samples.size(); i += n) {
        n = 1;
        std::vector<std::vector<trace::ResultRow>> rows(1);
        if (writer.has_results(task.name, samples[i].number)) rows[0] = writer.results(task.name, samples[i].number);
        const size_t n_known = rows[0].size();
        if (n_known >= plans.size()) continue;
        while (share_caches && n_known == 0 && i + n < samples.size() && have_one_cache(samples[i], samples[i + n]) &&
               !writer.has_results(task.name, samples[i + n].number))
            ++n;
        if (on_begun) on_begun(i);
        // Every experiment requires the full run, even if the trace contains its results.
        std::vector<RunPlan> left(plans.begin() + static_cast<std::ptrdiff_t>(n_known), plans.end());
        if (n_known > 0) left.insert(left.begin(), plans[0]);
        const size_t n_again = n_known > 0 ? 1 : 0;
        rows.resize(n);
        std::vector<Prompt> prompts;
        for (size_t q = 0; q < n; ++q) {
            rows[q].resize(plans.size());
            prompts.push_back(samples[i + q].prompt);
        }
        how.n_new = samples[i].n_new > 0 ? samples[i].n_new : options.n_new;
        how.end_ids = samples[i].end_ids;
        how.batch = samples[i].batch;
        if (!std::exchange(is_warm, true)) Experiment(model, left, how, progress).run(std::span(&samples[i].prompt, 1));
        const Stopwatch watch;
        double seconds_before = 0;
        std::vector<size_t> n_done(n);
        Experiment experiment(model, left, how, progress);
        std::vector<Causes> causes;
        for (const Prompt& prompt : prompts) causes.emplace_back(model, prompt);
        const bool has_evidence =
            std::ranges::any_of(prompts, [](const Prompt& prompt) { return !prompt.evidence.empty(); });
        if (has_evidence && !how.isolated)
            experiment.on_window_attention = [&](std::span<const float> attention) {
                for (Causes& of_question : causes) of_question.observe(attention);
            };
        experiment.on_begun = [&](int question) {
            if (question > 0 && on_begun) on_begun(i + static_cast<size_t>(question));
        };
        experiment.on_run = [&](int question, int run, const trace::RunRecord& record) {
            const auto q = static_cast<size_t>(question), at = static_cast<size_t>(run);
            if (at >= n_again) {
                trace::ResultRow& row = rows[q][n_known + at - n_again];
                row = row_of(model, task, samples[i + q], left[at], record);
                causes[q].set_cause(row, record);
            }
            if (++n_done[q] < left.size()) return;
            const double now = watch.seconds(), seconds = now - std::exchange(seconds_before, now);
            for (size_t row = n_known; row < plans.size(); ++row) {
                rows[q][row].seconds = seconds / static_cast<double>(left.size());
                if (!analysis::is_wrong_only_compressed(rows[q][row], rows[q][0])) analysis::forget_cause(rows[q][row]);
            }
            writer.write_results(task.name, samples[i + q].number, rows[q]);
            if (on_sample) on_sample(i + q, rows[q], seconds);
        };
        experiment.run(prompts);
    }
}

}  // namespace kvscope::engine
