#include "engine/rerun_recorded_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/bounded_json.h"
#include "common/json.h"
#include "engine/common/engine_error.h"
#include "policies/registry/policy_from_record.h"
#include "trace/records/schema.h"

namespace kvscope::engine {
namespace {

/// Returns the number of entries that only one of two runs keeps; 0 if the trace does not contain the kept entries.
int64_t n_other_entries(const trace::Reader& reader, int prompt, int run, const trace::RunRecord& again) {
    if (!reader.has(trace::Place::of_run(prompt, run), trace::schema::run::kept_indices)) return 0;
    const auto recorded = reader.kept(prompt, run);
    if (recorded->offsets.size() != again.kept_offsets.size()) return static_cast<int64_t>(again.kept_indices.size());
    int64_t n = 0;
    for (size_t i = 0; i + 1 < again.kept_offsets.size(); ++i) {
        const auto row = [&](const auto& indices, const auto& offsets) {
            return std::span(indices).subspan(offsets[i], offsets[i + 1] - offsets[i]);
        };
        const auto a = row(recorded->indices, recorded->offsets);
        const auto b = row(again.kept_indices, again.kept_offsets);
        std::vector<uint32_t> other;
        std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(other));
        n += static_cast<int64_t>(other.size());
    }
    // Two entries with different channels count as different.
    const size_t n_rows = recorded->offsets.size() - 1;
    const auto place = trace::Place::of_run(prompt, run);
    const auto channels = reader.has(place, trace::schema::run::channels_kept)
                              ? reader.read<uint8_t>(place, trace::schema::run::channels_kept)
                              : std::vector<uint8_t>{};
    if (channels.size() != again.channels_kept.size()) return static_cast<int64_t>(again.kept_indices.size());
    const size_t d = n_rows > 0 ? channels.size() / n_rows : 0;
    for (size_t i = 0; d > 0 && i < n_rows; ++i) {
        const auto first = channels.begin() + static_cast<std::ptrdiff_t>(i * d);
        if (!std::equal(first, first + static_cast<std::ptrdiff_t>(d),
                        again.channels_kept.begin() + static_cast<std::ptrdiff_t>(i * d)))
            n += static_cast<int64_t>(again.kept_offsets[i + 1] - again.kept_offsets[i]);
    }
    return n;
}

std::vector<int> of_same_context(const trace::Reader& reader, int prompt) {
    const int first = reader.prompt(prompt).context_of.value_or(reader.prompt_number(prompt));
    std::vector<int> all;
    for (int i = 0; i < reader.n_prompts(); ++i)
        if (i == prompt || reader.prompt_number(i) == first || reader.prompt(i).context_of == first) all.push_back(i);
    return all;
}

/// Returns why the policy would read other files than the recorded run; empty if the files are unchanged.
std::string files_changed(const trace::Reader& reader, int prompt, int run, const policies::PolicySpec& spec) {
    if (!spec.definition->needs_file || !reader.is_in_file(prompt, run)) return {};
    const auto recipe = bounded_json::parse_or_discard(reader.recipe_json());
    const auto at = static_cast<size_t>(reader.run_number(prompt, run));
    if (!recipe.is_object() || !recipe.contains("runs") || !recipe["runs"].is_array() || at >= recipe["runs"].size())
        return {};
    const auto& recorded = recipe["runs"][at];
    if (!recorded.is_object() || !recorded.contains("files") || recorded["files"] == fingerprint_policy_files(spec))
        return {};
    const std::string now = fingerprint_policy_files(spec);
    return fmt::format(
        "{} would read files that have changed since the trace was made: expected the fingerprint {:.16}, found {}; "
        "restore "
        "the files, or run the policy again",
        spec.label(), recorded["files"].is_string() ? recorded["files"].get<std::string>() : recorded["files"].dump(),
        now.empty() ? "none" : fmt::format("{:.16}", now));
}

/// Repeats the recorded switches between whole and stored entries, including those that a user requested.
void follow_switches(const trace::Reader& reader, int prompt, int run, RunPlan& plan) {
    const auto place = trace::Place::of_run(prompt, run);
    if (!reader.has(place, trace::schema::run::switch_steps)) return;
    policies::set_recorded_switches(plan.spec, reader.read<uint32_t>(place, trace::schema::run::switch_steps),
                                    reader.answer_length(prompt, run));
}

/// Runs to repeat in one experiment. Full runs share one plan.
struct Again {
    std::vector<RunPlan> plans;          ///< plans of the experiment, the full run first
    std::vector<size_t> places;          ///< index in `plans` of each run; undefined if the run has an obstacle
    std::vector<std::string> obstacles;  ///< why each run cannot be repeated; empty if possible
};

Again plan_again(const trace::Reader& reader, int prompt, std::span<const int> runs, bool answers) {
    Again again{with_full_run_first({}), {}, {}};
    for (const int run : runs) {
        RunPlan plan = plan_of_recorded_run(reader.run(prompt, run));
        // Caches for further questions start without the recorded switches.
        if (answers) follow_switches(reader, prompt, run, plan);
        again.obstacles.push_back(files_changed(reader, prompt, run, plan.spec));
        const bool is_full = plan.spec.definition->is_full();
        again.places.push_back(is_full ? 0 : again.plans.size());
        if (!is_full && again.obstacles.back().empty()) again.plans.push_back(std::move(plan));
    }
    return again;
}

}  // namespace

ExperimentOptions options_of_recorded_answers(const trace::Reader& reader, int prompt) {
    ExperimentOptions options;
    const auto full = reader.full_run(prompt);
    if (full) {
        const int64_t n_recorded = reader.answer_length(prompt, *full);
        if (n_recorded > 0) options.n_new = n_recorded;
        options.seed = reader.run(prompt, *full).seed;
    }
    read_options_from_recipe(bounded_json::parse_or_discard(reader.recipe_json()), options);
    if (reader.prompt(prompt).window > 0) options.window = static_cast<int>(reader.prompt(prompt).window);
    return options;
}

RunPlan plan_of_recorded_run(const trace::RunAttributes& run) {
    RunPlan plan;
    try {
        plan.spec = policies::policy_from_record(run.policy, run.parameters_json);
    } catch (const policies::ParameterError& error) {
        throw UsageError(fmt::format("{}: {}", run.label, error.what()));
    }
    const auto budget = policies::recorded_budget(plan.spec, run.budget, run.budget_fraction);
    plan.budget = run.is_full() ? policies::parse_budget("100%")
                                : budget.value_or(policies::Budget{.is_share = true, .share = run.budget_fraction});
    return plan;
}

std::vector<RepeatedRun> rerun_recorded_runs(const Model& model, const trace::Reader& reader, int prompt,
                                             std::span<const int> runs, bool answers, Progress& progress,
                                             const std::function<void(size_t, int32_t)>& on_token) {
    ExperimentOptions options = options_of_recorded_answers(reader, prompt);
    options.keep_caches = true;
    options.compare = options.record = answers;
    const Again again = plan_again(reader, prompt, runs, answers);
    const bool go_by_answers = std::any_of(again.plans.begin(), again.plans.end(), [](const RunPlan& plan) {
        return plan.spec.create()->needs().answer_attention;
    });
    if (!answers && !go_by_answers) options.n_new = 1;
    std::vector<Prompt> prompts;
    size_t wanted = 0;
    for (const int i : go_by_answers ? of_same_context(reader, prompt) : std::vector<int>{prompt}) {
        if (i == prompt) wanted = prompts.size();
        prompts.push_back(read_prompt_from_trace(model, reader, i, options.n_new, progress.stop_token()));
    }

    Experiment experiment(model, again.plans, options, progress);
    std::vector<trace::RunRecord> records(again.plans.size());
    experiment.on_run = [&](int at, int run, const trace::RunRecord& record) {
        if (static_cast<size_t>(at) == wanted) records[static_cast<size_t>(run)] = record;
    };
    size_t reading = 0;
    experiment.on_prompt = [&](int at, const trace::PromptRecord&) { reading = static_cast<size_t>(at); };
    experiment.on_token = [&](int run, int32_t id) {
        if (!on_token || reading != wanted) return;
        for (size_t i = 0; i < runs.size(); ++i)
            if (again.obstacles[i].empty() && again.places[i] == static_cast<size_t>(run)) on_token(i, id);
    };
    experiment.run(prompts);
    std::vector<std::shared_ptr<Conversation>> caches;
    for (auto& cache : experiment.take_caches()) caches.push_back(std::move(cache));

    std::vector<RepeatedRun> repeated(runs.size());
    for (size_t i = 0; i < runs.size(); ++i) {
        if (!again.obstacles[i].empty()) {
            static_cast<trace::RunAttributes&>(repeated[i].record) = reader.run(prompt, runs[i]);
            repeated[i].record.status = trace::schema::run::status_failed;
            repeated[i].record.message = again.obstacles[i];
            continue;
        }
        const size_t place = again.places[i];
        repeated[i].record = records[place];
        repeated[i].cache = caches[place];
        if (!repeated[i].cache) continue;
        repeated[i].n_other = n_other_entries(reader, prompt, runs[i], records[place]);
        if (reader.answer_length(prompt, runs[i]) > 0)
            repeated[i].cache->set_answer(reader.run(prompt, runs[i]).output_text);
    }
    return repeated;
}

}  // namespace kvscope::engine
