#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/experiment.h"

namespace kvscope::program {

/// A context and its questions. Without questions, the context alone is the prompt.
struct PromptText {
    std::string name;
    std::string context;
    std::vector<std::string> questions;
    std::string origin = {};  ///< file or option that messages name; may be empty
};

/// Settings of `kvscope run`, or of a run started in the app.
struct RunJob {
    std::filesystem::path model;  ///< empty for the default model
    std::vector<PromptText> prompts;
    std::string prompt_from;  ///< prompts of a trace instead of `prompts`: "trace.h5", or "trace.h5:0,2" for some
    std::vector<std::string> policies;
    std::vector<std::string> budgets;
    engine::ExperimentOptions experiment;
    std::filesystem::path output;
    bool force = false;
    bool requires_files =
        true;  ///< whether the job is refused if a policy's file is missing; otherwise only its runs fail
};

/// Callbacks of run_job(), called on its thread. Each may be empty.
struct RunEvents {
    std::function<void(std::span<const engine::Prompt>)> on_prompts;  ///< after tokenizing, before the first run
    std::function<void(engine::Experiment&)> on_begin;                ///< may set the experiment's callbacks
    std::function<void(engine::Experiment&)> on_end;                  ///< also called after a stopped experiment
    /// Receives warnings that --quiet does not hide. If empty, Progress::message receives them.
    std::function<void(const std::string&)> on_warning;
};

struct RunOutcome {
    bool was_complete = false;
    int n_failed = 0;  ///< number of failed runs in the trace, including runs of earlier commands
    engine::Timings timings;
};

/// Returns a job that runs twelve policies at two budgets on the demo prompt.
[[nodiscard]] RunJob demo_job(const std::filesystem::path& output);

/// Returns each run once, the full run first. @throws std::invalid_argument for malformed policies or budgets
[[nodiscard]] std::vector<engine::RunPlan> run_plans_of_job(const RunJob& job);

/// Returns one line for each setting without effect, such as an unused budget or a repeated run. @throws as
/// run_plans_of_job
[[nodiscard]] std::vector<std::string> settings_without_effect(const RunJob& job);

/// Checks that the trace in `prompt_from` is readable. @throws as trace::Reader
void check_prompt_trace_is_readable(const RunJob& job);

/// Returns one line per budget for this prompt: "budget 0.1: 195 of 1948 entries kept (10.0 %), …".
[[nodiscard]] std::vector<std::string> budget_lines(std::span<const engine::RunPlan> plans,
                                                    const engine::Prompt& prompt, const engine::Transformer& model);

/// Removes the `.part` folder of a trace without results. The folder would make a corrected command fail.
void remove_part_folder_without_results(const std::filesystem::path& output);

/// Removes the `.part` folder of a stopped job, unless the folder contains a prefilled prompt.
void remove_part_folder_without_prompts(const std::filesystem::path& output);

/// Checks before the weights are loaded that prompts fit into context and memory, policies support their budgets, and
/// the output is writable. @param model passed by Model::open to `before_weights` @throws as run_job
void check_job(const RunJob& job, const std::vector<engine::RunPlan>& plans, const engine::Model& model);

/// Runs the job and writes its trace. Adds missing prompts and runs to an existing trace of the same recipe. The job
/// must also name the prompts that this trace already contains. Callbacks get the trace's prompt numbers.
/// @throws std::invalid_argument for wrong usage; engine::Cancelled, after which finished runs remain in the trace
[[nodiscard]] RunOutcome run_job(const RunJob& job, const std::vector<engine::RunPlan>& plans,
                                 const engine::Model& model, engine::Progress& progress, const RunEvents& events = {});

}  // namespace kvscope::program
