#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "app/program/engine/run_job.h"
#include "app/program/engine/shard_of_job.h"
#include "engine/task_evaluation.h"
#include "trace/writer.h"

namespace kvscope::program {

/// A job with its recipe, prompts and runs. If the job extends a trace, prompts and runs are in the trace's order.
struct PreparedJob {
    RunJob job;
    std::vector<engine::Prompt> prompts{};          ///< for a task, those of `samples`
    std::vector<engine::PreparedSample> samples{};  ///< of the job's task
    std::vector<engine::RunPlan> plans;
    std::vector<std::string> left_out{};            ///< why prompts or samples cannot be run, one reason each
    size_t n_prompts_there = 0, n_plans_there = 0;  ///< first prompts and plans that a complete trace already contains
    size_t n_continued = 0;                         ///< runs of an unfinished trace that the job does not name
    std::string recipe{};
    trace::WriterOptions options{};
};

/// Callbacks of run_job(), called on its thread. Each may be empty.
struct RunEvents {
    std::function<void(std::span<const engine::Prompt>)> on_prompts;  ///< after tokenizing, before the first run
    std::function<void(engine::Experiment&)> on_begin;                ///< may set the experiment's callbacks
    std::function<void(engine::Experiment&)> on_end;                  ///< also called after a stopped experiment
    /// Called before the runs of a prompt, with the remaining seconds of all prompts; negative if unknown.
    std::function<void(int prompt, double seconds_left)> on_prompt_begun;
    std::function<void(size_t sample)> on_sample_begun;  ///< before the runs of a sample of a task
    /// Receives the new results of one sample of a task, the seconds that they took and the remaining seconds.
    std::function<void(size_t sample, std::span<const trace::ResultRow>, double seconds, double seconds_left)>
        on_sample;
    /// Receives warnings that --quiet does not hide. If empty, Progress::message receives them.
    std::function<void(const std::string&)> on_warning;
};

struct RunOutcome {
    bool was_complete = false;
    int n_failed = 0;       ///< number of failed runs in the trace, including runs of earlier commands
    size_t n_left_out = 0;  ///< number of prompts or samples that cannot be run
    engine::Timings timings;
    bool is_empty_shard = false;  ///< the job's shard has no prompts and therefore no trace
};

/// Returns a warning about a prompt or sample that cannot be run. @param reason of PreparedJob::left_out
[[nodiscard]] std::string left_out_warning(const RunJob& job, const std::string& reason);

/// Checks that the trace in `prompt_from` is readable. @throws as trace::Reader
void check_prompt_trace_is_readable(const RunJob& job);

/// Returns the path of the trace in `prompt_from`, which is not empty.
[[nodiscard]] std::filesystem::path trace_of_prompts(const RunJob& job);

/// Removes the `.part` folder of a trace without results. The folder would make a corrected command fail.
void remove_part_folder_without_results(const std::filesystem::path& output);

/// Removes the `.part` folder of a stopped job, unless the folder contains a prefilled prompt.
void remove_part_folder_without_prompts(const std::filesystem::path& output);

/// Tokenizes the prompts and compares the job with an existing output. @param model loaded, or without weights as in
/// the callback `before_weights` of Model::open @throws std::invalid_argument for wrong usage; EmptyShard; Stopped
[[nodiscard]] PreparedJob prepare_job(const RunJob& job, const std::vector<engine::RunPlan>& plans,
                                      const engine::Model& model, const std::stop_token& stop);

/// Checks before the weights are loaded that prompts fit into context and memory, policies support their budgets, and
/// the output is writable. @throws as run_job
void check_job(const PreparedJob& prepared, const engine::Model& model);

/// Runs the job and writes its trace, or its head-importance file. Adds missing prompts and runs to an existing trace
/// of the same recipe. The job must also name the prompts that this trace already contains. Callbacks get the trace's
/// prompt numbers.
/// @throws std::invalid_argument for wrong usage; Stopped, after which finished runs remain in the trace
[[nodiscard]] RunOutcome run_job(const PreparedJob& prepared, const engine::Model& model, engine::Progress& progress,
                                 const RunEvents& events = {});

}  // namespace kvscope::program
