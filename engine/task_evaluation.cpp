#include "engine/task_evaluation.h"

#include <utility>

#include "analysis/measures/result_row.h"
#include "analysis/measures/wrong_answer.h"
#include "common/json.h"
#include "engine/common/engine_error.h"
#include "engine/common/stopwatch.h"

namespace kvscope::engine {
namespace {

/// Finds the causes of wrong answers to a sample while its runs end, because only then their scores are in memory.
class Causes {
 public:
    Causes(const Model& model, const Prompt& prompt) : model_(model), prompt_(prompt) {}

    /// Makes the experiment observe the attention to the evidence.
    void observe(Experiment& experiment) {
        if (prompt_.evidence.empty()) return;
        most_attention_.assign(prompt_.evidence.size(), 0);
        experiment.on_window_attention = [this](std::span<const float> attention) {
            analysis::raise_most_attention(attention, model_.attributes().n_heads, prompt_.evidence, most_attention_);
        };
    }

    void set_cause(trace::ResultRow& row, const trace::RunRecord& record) const {
        if (record.status != trace::schema::run::status_complete || record.is_full() || analysis::is_right(row)) return;
        const analysis::HeldTokens held(record, static_cast<size_t>(model_.attributes().n_layers),
                                        static_cast<size_t>(prompt_.n_visible()));
        analysis::set_cause(row, {record, held.sets(), prompt_.evidence, most_attention_});
    }

 private:
    const Model& model_;
    const Prompt& prompt_;
    std::vector<float> most_attention_;  ///< one per evidence token; empty if not observed
};

trace::ResultRow row_of(const Model& model, const Task& task, const PreparedSample& sample, const RunPlan& plan,
                        const trace::RunRecord& record) {
    trace::PromptAttributes prompt;
    prompt.name = sample.id;
    prompt.text = sample.prompt.text;
    prompt.n_tokens = static_cast<int64_t>(sample.prompt.ids.size());
    prompt.n_context = sample.prompt.n_context;
    prompt.query_aware = sample.prompt.query_aware;
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

}  // namespace

void add_score(trace::ResultRow& row, const Scorer& scorer, std::span<const std::string> answers) {
    row.answers_json = nlohmann::json(answers).dump();
    row.metric = scorer.metric;
    row.scored_as = scorer.scored_as;
    const bool is_complete = row.status == trace::schema::run::status_complete;
    row.score = is_complete || answers.empty() ? scorer.score(row.prediction, answers) : 0;
}

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
    bool is_warm = !task.measures_time;
    for (size_t i = 0; i < samples.size(); ++i) {
        std::vector<trace::ResultRow> rows;
        if (writer.has_results(task.name, samples[i].number)) rows = writer.results(task.name, samples[i].number);
        const size_t n_known = rows.size();
        if (n_known >= plans.size()) continue;
        if (on_begun) on_begun(i);
        // Every experiment requires the full run, even if the trace contains its results.
        std::vector<RunPlan> left(plans.begin() + static_cast<std::ptrdiff_t>(n_known), plans.end());
        if (n_known > 0) left.insert(left.begin(), plans[0]);
        const size_t n_again = n_known > 0 ? 1 : 0;
        rows.resize(plans.size());
        how.n_new = samples[i].n_new > 0 ? samples[i].n_new : options.n_new;
        how.end_ids = samples[i].end_ids;
        how.batch = samples[i].batch;
        if (!std::exchange(is_warm, true)) Experiment(model, left, how, progress).run(std::span(&samples[i].prompt, 1));
        const Stopwatch watch;
        Experiment experiment(model, left, how, progress);
        Causes causes(model, samples[i].prompt);
        if (!how.isolated) causes.observe(experiment);
        experiment.on_run = [&](int, int run, const trace::RunRecord& record) {
            const auto at = static_cast<size_t>(run);
            if (at < n_again) return;
            trace::ResultRow& row = rows[n_known + at - n_again];
            row = row_of(model, task, samples[i], left[at], record);
            causes.set_cause(row, record);
        };
        experiment.run(std::span(&samples[i].prompt, 1));
        const double seconds = watch.seconds();
        for (size_t row = n_known; row < rows.size(); ++row) {
            rows[row].seconds = seconds / static_cast<double>(left.size());
            if (!analysis::is_wrong_only_compressed(rows[row], rows[0])) analysis::forget_cause(rows[row]);
        }
        writer.write_results(task.name, samples[i].number, rows);
        if (on_sample) on_sample(i, rows, seconds);
    }
}

}  // namespace kvscope::engine
