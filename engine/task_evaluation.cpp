#include "engine/task_evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "common/json.h"
#include "engine/common/stopwatch.h"
#include "engine/files/sha256.h"
#include "engine/files/stop_check.h"

namespace kvscope::engine {
namespace {

double kept_share(const trace::RunRecord& record, int64_t n_tokens) {
    if (record.kept_offsets.size() < 2 || n_tokens == 0) return 0;
    const double rows = static_cast<double>(record.kept_offsets.size() - 1);
    return static_cast<double>(record.kept_indices.size()) / (rows * static_cast<double>(n_tokens));
}

std::string hash_of(const std::string& text) {
    checkpoint::Sha256 hash;
    hash.update(text);
    return hash.hex_digest();
}

trace::ResultRow row_of(const TaskSample& sample, const trace::RunRecord& record) {
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
    row.answers_json = nlohmann::json::array({sample.answer}).dump();
    row.metric = "string_match_all";
    row.scored_as = "ruler";
    row.kept_share = kept_share(record, sample.prompt.n_visible());
    row.status = record.status == "complete" ? record.status : fmt::format("{}: {}", record.status, record.message);
    if (record.status == "complete") row.score = string_match_score(record.output_text, sample.answer);
    return row;
}

}  // namespace

std::vector<TaskSample> make_needle_samples(const Model& model, const NeedleTask& task) {
    require_lengths_fit_context(task.lengths, task.prompt.n_new, model.config().context_length);
    std::vector<TaskSample> samples;
    std::set<std::string> names;
    const auto n_places = static_cast<int>(task.lengths.size() * task.depths.size());
    for (int first = 0; first < task.n_seeds; first += samples_of_a_round) {
        int place = 0;
        for (const int64_t length : task.lengths) {
            for (const double depth : task.depths) {
                for (int i = first; i < std::min(task.n_seeds, first + samples_of_a_round); ++i) {
                    checkpoint::StopCheck::now();
                    const int number = first * n_places + place * samples_of_a_round + i - first;
                    const uint64_t seed = task.seed + static_cast<uint64_t>(number);
                    const auto needle = make_needle_prompt(model.tokenizer(),
                                                           {NeedleKind::retrieval, length, depth, seed, task.haystack});
                    PromptOptions options = task.prompt;
                    options.name = fmt::format("niah-{}-{:g}-{}", length, depth, i);
                    if (!names.insert(options.name).second)
                        throw UsageError(
                            fmt::format("the length {} with the depth {:g} is given twice: give each combination once",
                                        length, depth));
                    samples.push_back({options.name, number,
                                       tokenize_prompt(model, needle.context, needle.question, options), needle.answer,
                                       length, depth});
                }
                ++place;
            }
        }
    }
    return samples;
}

void evaluate_task(
    const Model& model, const std::string& task, std::span<const TaskSample> samples, const std::vector<RunPlan>& plans,
    const ExperimentOptions& options, trace::Writer& writer, Progress& progress,
    const std::function<void(size_t sample, std::span<const trace::ResultRow>, double seconds)>& on_sample) {
    if (!writer.has_model()) {
        trace::ModelRecord record;
        static_cast<trace::ModelAttributes&>(record) = model.attributes();
        writer.write_model(record);
    }
    ExperimentOptions how = options;
    how.require_possible_run = false;
    for (size_t i = 0; i < samples.size(); ++i) {
        std::vector<trace::ResultRow> rows;
        if (writer.has_results(task, samples[i].number)) rows = writer.results(task, samples[i].number);
        const size_t n_known = rows.size();
        if (n_known >= plans.size()) continue;
        const Stopwatch watch;
        // Every experiment requires the full run, even if the trace contains its results.
        std::vector<RunPlan> left(plans.begin() + static_cast<std::ptrdiff_t>(n_known), plans.end());
        if (n_known > 0) left.insert(left.begin(), plans[0]);
        const size_t n_again = n_known > 0 ? 1 : 0;
        rows.resize(plans.size());
        Experiment experiment(model, left, how, progress);
        experiment.on_run = [&](int, int run, const trace::RunRecord& record) {
            const auto at = static_cast<size_t>(run);
            if (at >= n_again) rows[n_known + at - n_again] = row_of(samples[i], record);
        };
        experiment.run(std::span(&samples[i].prompt, 1));
        const double seconds = watch.seconds();
        for (size_t row = n_known; row < rows.size(); ++row)
            rows[row].seconds = seconds / static_cast<double>(left.size());
        writer.write_results(task, samples[i].number, rows);
        if (on_sample) on_sample(i, rows, seconds);
    }
}

}  // namespace kvscope::engine
