#include "app/cli/engine/predict_job.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "app/cli/engine/terminal_progress.h"
#include "app/program/engine/trace_size.h"
#include "common/file_text.h"
#include "common/json.h"
#include "common/whole_file.h"
#include "engine/run_requirements.h"
#include "trace/shard.h"

namespace kvscope::cli {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double largest_memory_so_far() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) * 1024;
}

/// Returns the job's shard that contains the shortest prompt, or the first one if prompts share their prefill.
trace::Shard shard_of_short_prompt(const program::RunJob& job, const std::vector<engine::RunPlan>& plans,
                                   const engine::Model& model, std::span<const engine::Prompt> prompts,
                                   const std::stop_token& stop) {
    program::RunJob first = job;
    first.shard = {1, trace::most_shards};
    const auto recipe = nlohmann::json::parse(program::prepare_job(first, plans, model, stop).recipe);
    const auto n = recipe.at(trace::recipe_keys::job).at("contexts").get<size_t>();
    if (n != prompts.size()) return {1, static_cast<int>(n)};
    const auto shortest = std::ranges::min_element(prompts, {}, [](const auto& prompt) { return prompt.ids.size(); });
    return {static_cast<int>(shortest - prompts.begin()) + 1, static_cast<int>(n)};
}

}  // namespace

void declare_prediction(CLI::App& app, std::filesystem::path& file) {
    app.add_option("--prediction", file, "Run one short prompt, and write a prediction of the whole job to this file")
        ->type_name("FILE.json")
        ->group("");
}

int predict_job(program::RunJob job, const TerminalOptions& options, const std::filesystem::path& file) {
    job.output = file;
    job.output.replace_extension(".h5");
    const auto plans = program::run_plans_of_job(job);
    if (const std::string problem = engine::find_option_problem(job.experiment); !problem.empty())
        throw std::invalid_argument(problem);
    TerminalProgress progress(true);
    return run_unless_stopped(job.output, [&] {
        program::PreparedJob whole, part;
        const auto start = std::chrono::steady_clock::now();
        const engine::Model model = options.model.open(progress, [&](const engine::Model& found) {
            whole = program::prepare_job(job, plans, found, progress.stop_token());
            program::check_job(whole, found);
            program::RunJob short_job = job;
            short_job.shard = shard_of_short_prompt(job, plans, found, whole.prompts, progress.stop_token());
            part = program::prepare_job(short_job, plans, found, progress.stop_token());
        });
        const double load_s = seconds_since(start);
        const auto run_start = std::chrono::steady_clock::now();
        (void)program::run_job(part, model, progress);
        const auto tokens_of = [](const program::PreparedJob& one) {
            int64_t n = 0;
            for (const engine::Prompt& prompt : one.prompts) n += static_cast<int64_t>(prompt.ids.size());
            return n;
        };
        const auto memory_of = [&](const program::PreparedJob& one) {
            return static_cast<double>(engine::least_memory_bytes(model, one.prompts, one.plans, one.job.experiment));
        };
        const double tokens_share = static_cast<double>(tokens_of(whole)) / static_cast<double>(tokens_of(part));
        const nlohmann::ordered_json json = {
            {"prompts", whole.prompts.size()},
            {"runs", plans.size()},
            {"tokens", tokens_of(whole)},
            {"seconds", load_s + seconds_since(run_start) * tokens_share},
            {"memory_bytes", largest_memory_so_far() + memory_of(whole) - memory_of(part)},
            {"trace_bytes", program::predicted_trace_bytes(whole, model)}};
        write_whole_file(file, json.dump(2) + "\n", true);
        return 0;
    });
}

JobPrediction read_prediction(const std::filesystem::path& file) {
    const auto json = nlohmann::json::parse(file_text(file));
    JobPrediction prediction;
    json.at("prompts").get_to(prediction.n_prompts);
    json.at("runs").get_to(prediction.n_runs);
    json.at("tokens").get_to(prediction.n_tokens);
    json.at("seconds").get_to(prediction.seconds);
    json.at("memory_bytes").get_to(prediction.memory_bytes);
    json.at("trace_bytes").get_to(prediction.trace_bytes);
    return prediction;
}

}  // namespace kvscope::cli
