#include "engine/task_evaluation.h"

#include <fmt/format.h>

#include <utility>

#include "common/json.h"
#include "engine/common/stopwatch.h"
#include "common/sha256.h"

namespace kvscope::engine {
namespace {

double kept_share(const trace::RunRecord& record, int64_t n_tokens) {
    if (record.kept_offsets.size() < 2 || n_tokens == 0) return 0;
    const double rows = static_cast<double>(record.kept_offsets.size() - 1);
    return static_cast<double>(record.kept_indices.size()) / (rows * static_cast<double>(n_tokens));
}

std::string hash_of(const std::string& text) {
    Sha256 hash;
    hash.update(text);
    return hash.hex_digest();
}

trace::ResultRow row_of(const Task& task, const PreparedSample& sample, const trace::RunRecord& record) {
    trace::ResultRow row;
    row.sample_id = sample.id;
    row.prompt_hash = hash_of(sample.prompt.text);
    row.policy = record.policy;
    row.parameters_json = record.parameters_json;
    row.budget = record.budget;
    row.budget_fraction = record.budget_fraction;
    row.length = sample.length;
    row.depth = sample.depth;
    row.prediction = record.output_text;
    row.answers_json = nlohmann::json(sample.answers).dump();
    row.metric = task.scorer.metric;
    row.scored_as = "ruler";
    row.kept_share = kept_share(record, sample.prompt.n_visible());
    row.status = record.status == "complete" ? record.status : fmt::format("{}: {}", record.status, record.message);
    if (record.status == "complete") row.score = task.scorer.score(record.output_text, sample.answers);
    return row;
}

}  // namespace

std::vector<PreparedSample> prepare_samples(const Model& model, const Task& task, const TaskOptions& options,
                                            PromptOptions prompt) {
    prompt.use_template = prompt.use_template && task.applies_template;
    std::vector<PreparedSample> samples;
    for (auto& sample : task.make_samples(
             {task, options, model.tokenizer(), model.config().context_length, prompt.n_new, prompt.stop})) {
        prompt.name = sample.id;
        Prompt tokenized = tokenize_prompt(model, sample.context, sample.question, prompt);
        if (sample.length == 0) sample.length = static_cast<int64_t>(tokenized.ids.size());
        samples.push_back({std::move(sample), std::move(tokenized)});
    }
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
    for (size_t i = 0; i < samples.size(); ++i) {
        std::vector<trace::ResultRow> rows;
        if (writer.has_results(task.name, samples[i].number)) rows = writer.results(task.name, samples[i].number);
        const size_t n_known = rows.size();
        if (n_known >= plans.size()) continue;
        if (on_begun) on_begun(i);
        const Stopwatch watch;
        // Every experiment requires the full run, even if the trace contains its results.
        std::vector<RunPlan> left(plans.begin() + static_cast<std::ptrdiff_t>(n_known), plans.end());
        if (n_known > 0) left.insert(left.begin(), plans[0]);
        const size_t n_again = n_known > 0 ? 1 : 0;
        rows.resize(plans.size());
        Experiment experiment(model, left, how, progress);
        experiment.on_run = [&](int, int run, const trace::RunRecord& record) {
            const auto at = static_cast<size_t>(run);
            if (at >= n_again) rows[n_known + at - n_again] = row_of(task, samples[i], record);
        };
        experiment.run(std::span(&samples[i].prompt, 1));
        const double seconds = watch.seconds();
        for (size_t row = n_known; row < rows.size(); ++row)
            rows[row].seconds = seconds / static_cast<double>(left.size());
        writer.write_results(task.name, samples[i].number, rows);
        if (on_sample) on_sample(i, rows, seconds);
    }
}

}  // namespace kvscope::engine
