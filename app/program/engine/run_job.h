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
    std::string origin = {};  ///< source for messages, such as a file; may be empty
};

/// All settings of `kvscope run` and of a run started in the app.
struct RunJob {
    std::filesystem::path model;  ///< empty for the default model
    std::vector<PromptText> prompts;
    std::string prompt_from;  ///< a trace whose prompts are used instead: "trace.h5", "trace.h5:2" or "trace.h5:0,1"
    std::vector<std::string> policies;  ///< in the syntax of --policy
    std::vector<std::string> budgets;   ///< in the syntax of --budget
    engine::ExperimentOptions experiment;
    std::filesystem::path output;
    bool force = false;
    bool requires_files = true;  ///< if false, a policy without its file fails only its own runs
};

/// Callbacks of `run`, called on its thread. Each may be empty.
struct RunEvents {
    std::function<void(std::span<const engine::Prompt>)> on_prompts;  ///< after tokenizing, before the first run
    std::function<void(engine::Experiment&)> on_begin;                ///< for connecting to the experiment's events
    std::function<void(engine::Experiment&)> on_end;                  ///< also called after a stopped experiment
    /// Receives warnings that --quiet does not hide, such as failed runs. If empty, Progress::message gets them.
    std::function<void(const std::string&)> on_warning;
};

struct RunOutcome {
    bool was_complete = false;  ///< whether the output was already complete
    int n_failed = 0;           ///< number of failed runs in the trace, including those of earlier commands
    engine::Timings timings;
};

/// Returns the demo: twelve policies at two budgets on the demo prompt.
RunJob demo_job(const std::filesystem::path& output);

/// Returns the job's runs, each once, the full run first. @throws std::invalid_argument for malformed policies or
/// budgets
std::vector<engine::RunPlan> plans_of(const RunJob& job);

/// Returns one line for each setting without effect: unused budgets, `--query-aware off` without a question, repeated
/// runs.
/// @throws what plans_of throws
std::vector<std::string> unheeded(const RunJob& job);

/// Checks that the trace in `prompt_from` can be read, before a model is loaded. @throws what trace::Reader throws
void check_prompt_source(const RunJob& job);

/// Returns one line per budget for this prompt: "budget 0.1: 195 of 1948 entries kept (10.0 %), …".
std::vector<std::string> budget_lines(std::span<const engine::RunPlan> plans, const engine::Prompt& prompt,
                                      const engine::Transformer& model);

/// Removes the `.part` folder of a trace without results, so that it does not block a corrected command.
void remove_begun_trace(const std::filesystem::path& output);

/// As remove_begun_trace, but keeps the folder if it contains a prefilled prompt. For jobs that were stopped.
void remove_empty_trace(const std::filesystem::path& output);

/// Checks that need no weights: the prompts fit context and memory, the policies support their budgets, the output is
/// writable. @param model as Model::open passes it to `before_weights` @throws what `run` throws
void check(const RunJob& job, const std::vector<engine::RunPlan>& plans, const engine::Model& model);

/// Runs the job and writes its trace. An existing trace of the same recipe is extended by the missing prompts and runs;
/// the job must name all its prompts. Events use the trace's numbers. An invalid job leaves no trace without results.
/// @throws std::invalid_argument for wrong usage; engine::Cancelled, after which finished runs stay on disk; other
/// exceptions for failures
RunOutcome run(const RunJob& job, const std::vector<engine::RunPlan>& plans, const engine::Model& model,
               engine::Progress& progress, const RunEvents& events = {});

}  // namespace kvscope::program
