#include "app/gui/engine/jobs_to_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "analysis/tables/table_format.h"
#include "common/bounded_json.h"
#include "common/json.h"
#include "engine/rerun_recorded_runs.h"
#include "policies/registry/policy_from_record.h"
#include "trace/part_folder.h"
#include "trace/reader.h"
#include "trace/shard.h"

namespace kvscope::gui {

UnfinishedRun read_unfinished_run(const std::filesystem::path& output) {
    const std::filesystem::path part = trace::part_folder_of(output);
    const trace::Reader reader(part);
    const auto recipe = bounded_json::parse_or_discard(reader.recipe_json());
    const auto cannot = [&](const char* why) {
        return std::runtime_error(fmt::format(
            "{} cannot be continued automatically: {}. Start the same run again to continue", part.string(), why));
    };
    if (recipe.is_object() && recipe.contains("task")) throw cannot("it contains the samples of a task");
    if (trace::shard_of_recipe(recipe)) throw cannot("it is a shard of a job");
    try {
        const size_t n_prompts = recipe.at("prompts").size();
        if (!reader.has_model() || reader.n_prompts() == 0 || static_cast<size_t>(reader.n_prompts()) != n_prompts)
            throw cannot("it ended before all prompts were read");
        UnfinishedRun unfinished;
        unfinished.model = reader.model();
        unfinished.job.output = output;
        std::vector<int> numbers(n_prompts);
        std::iota(numbers.begin(), numbers.end(), 0);
        unfinished.job.prompt_from = fmt::format("{}:{}", part.string(), fmt::join(numbers, ","));
        static_cast<engine::RunOptions&>(unfinished.job.experiment) = engine::options_of_recorded_answers(reader, 0);
        unfinished.job.experiment.dtype = recipe.at("dtype").get<std::string>();
        unfinished.job.experiment.device = engine::recorded_device(recipe);
        unfinished.job.experiment.isolated = recipe.at("mode") == "isolated";
        for (const auto& run : recipe.at("runs"))
            unfinished.plans.push_back(
                {policies::policy_from_record(run.at("policy").get<std::string>(), run.at("parameters").dump()),
                 policies::parse_budget(run.at("budget").get<std::string>())});
        return unfinished;
    } catch (const nlohmann::json::exception&) {
        throw cannot("its recipe is invalid");
    }
}

std::string describe_kept_parts(const std::filesystem::path& output) {
    size_t n_runs = 0, n_samples = 0;
    bool has_prompt = false, has_rows_of_prompts = false;
    try {
        const trace::Parts parts = trace::list_parts(trace::part_folder_of(output));
        has_prompt = !parts.prompts.empty();
        for (const auto& [prompt, runs] : parts.runs) n_runs += runs.size();
        for (const auto& [task, samples] : parts.results) n_samples += samples.size();
        has_rows_of_prompts = parts.results.contains(std::string(trace::schema::root::prompt_results));
    } catch (const std::exception&) {  // there is no such folder
    }
    if (n_samples > 0)
        return fmt::format("Finished {0}s are kept ({1}); the {0} in progress is repeated.",
                           has_rows_of_prompts ? "prompt" : "sample",
                           analysis::format_count(static_cast<int64_t>(n_samples)));
    if (n_runs > 0)
        return fmt::format("Finished runs are kept ({}); the prompt is read again for the others.",
                           analysis::format_count(static_cast<int64_t>(n_runs)));
    return has_prompt ? "No run was finished: the prompt is read again, and all runs are repeated."
                      : "Nothing was finished: the run starts again.";
}

std::optional<bool> recorded_choice_of_spectra(const std::filesystem::path& output, bool replaced) {
    std::vector<std::filesystem::path> places = {output.string() + ".part"};
    if (!replaced) places.push_back(output);
    for (const std::filesystem::path& path : places) {
        try {
            const auto recipe = nlohmann::json::parse(trace::Reader(path).recipe_json());
            return recipe.value("analyze", false);
        } catch (const std::exception&) {
            continue;  // no trace here; the writer reports errors
        }
    }
    return std::nullopt;
}

program::RunJob make_run_job(const RunRequest& request) {
    program::RunJob job;
    job.model = request.model;
    job.policies = request.policies;
    job.budgets = {request.budgets};
    static_cast<RunOptions&>(job.experiment) = request.options;
    if (request.task) program::set_task(job, *request.task->task, request.task->values);
    job.output = request.output;
    job.force = request.force;
    job.requires_files = false;  // the form has already said which runs will fail
    return job;
}

program::RunJob make_sample_job(const trace::Reader& reader, const SampleRun& run) {
    program::RunJob job;
    const auto recipe = bounded_json::parse_or_discard(reader.recipe_json());
    if (recipe.is_object()) {
        for (const engine::RunOption& option : engine::run_options()) option.read(recipe, job.experiment);
        job.experiment.dtype = recipe.value("dtype", job.experiment.dtype);
        job.experiment.device = engine::recorded_device(recipe);
    }
    job.experiment.record = job.experiment.compare = true;
    job.prompt_from = fmt::format("{}:{}", reader.path().string(), run.sample);
    job.policies = {run.policy};
    job.budgets = {run.budget};
    std::string name = reader.path().stem().string() + "-" + run.sample;
    std::ranges::replace_if(
        name, [](char c) { return c == '/' || c == ':' || c == ' ' || c == ',' || c == '@'; }, '-');
    job.output = name + ".h5";
    return job;
}

program::PromptsFound find_prompts(const RunRequest& request) {
    program::PromptText text{request.name, request.context, request.asked_questions()};
    if (request.sources.empty()) return {.prompts = {std::move(text)}, .problems = {}};
    text.context.clear();
    return program::find_prompts(std::move(text), request.sources);
}

PromptSource read_prompt_source(const std::filesystem::path& source) {
    auto [prompts, problems] = program::find_prompts({}, {&source, 1});
    const auto n = std::ranges::count_if(prompts, [](const auto& prompt) { return !prompt.questions.empty(); });
    return {static_cast<int>(prompts.size()), static_cast<int>(n), std::move(problems)};
}

}  // namespace kvscope::gui
