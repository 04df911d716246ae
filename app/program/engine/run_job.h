#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/experiment.h"

namespace kvscope::program {

/// One context with the questions asked of it; none: the text alone is the prompt.
struct PromptText {
    std::string name;
    std::string context;
    std::vector<std::string> questions;
    std::string origin = {};  ///< where the text is from, for messages: a file; empty: nothing to say
};

/// Everything that `kvscope run` and the window can ask of the engine.
struct RunJob {
    std::filesystem::path model;  ///< empty: the default model
    std::vector<PromptText> prompts;
    std::string prompt_from;  ///< "trace.h5", "trace.h5:2" or "trace.h5:0,1": a trace's prompts in place of `prompts`
    std::vector<std::string> policies;  ///< as --policy takes them
    std::vector<std::string> budgets;   ///< as --budget takes them
    engine::ExperimentOptions experiment;
    std::filesystem::path output;
    bool force = false;
    bool requires_files = true;  ///< a policy without its file refuses the job; else its own runs fail alone
};

/// What a caller takes part in; each may be empty. All of it is called from `run`'s thread.
struct RunEvents {
    std::function<void(std::span<const engine::Prompt>)> on_prompts;  ///< tokenised, before anything is run
    std::function<void(engine::Experiment&)> on_begin;                ///< to hang on to its events
    std::function<void(engine::Experiment&)> on_end;                  ///< also of one that was stopped
    /// What is to be seen also by who asked for no progress: a run that failed, a file that was set aside. Where it is
    /// empty these are messages of the progress.
    std::function<void(const std::string&)> on_warning;
};

struct RunOutcome {
    bool was_complete = false;  ///< the output held this very trace already
    int n_failed = 0;           ///< runs of the trace, also those that failed before this command
    engine::Timings timings;
};

/// A dozen policies on the demo prompt at two budgets.
RunJob demo_job(const std::filesystem::path& output);

/// The runs that the job names, the full cache first.
/// @throws std::invalid_argument for policies and budgets that are none
std::vector<engine::RunPlan> plans_of(const RunJob& job);

/// What of the job's policies and budgets plans_of() leaves out, a line each: a budget that no policy keeps to, and
/// runs that are asked for more than once. @throws as plans_of
std::vector<std::string> unheeded(const RunJob& job);

/// That the trace which a job takes its prompt from can be read: before a model is loaded for it.
/// @throws what trace::Reader throws
void check_prompt_source(const RunJob& job);

/// What each budget comes to on this prompt, kept and removed, once for all policies that have it: "budget 0.1: 195 of
/// 1948 entries kept (10.0 %), …".
std::vector<std::string> budget_lines(std::span<const engine::RunPlan> plans, const engine::Prompt& prompt,
                                      const engine::Transformer& model);

/// A wrong option must not leave a folder that stands in the way of the right one: removes the .part of a trace that
/// was begun, and in which nothing was finished. What was set aside in it as damaged stays: it may still be of use.
void remove_begun_trace(const std::filesystem::path& output);

/// The same where the job was right, and was stopped: a prompt that was read through stays, too.
void remove_empty_trace(const std::filesystem::path& output);

/// What is wrong with the job that can be known before the weights are read: a prompt that does not fit the context or
/// the memory, policies that cannot take any budget, an output that cannot be written.
/// @param model as Model::open gives it to `before_weights`
/// @throws what `run` throws for it
void check(const RunJob& job, const std::vector<engine::RunPlan>& plans, const engine::Model& model);

/// Runs the job on its model and writes its trace. A complete trace at the output is left as it is where it holds all
/// that the job asks for. It is extended where the job asks for more of the same recipe: it has to name all prompts of
/// the trace, and runs that it does not name stay in the trace. Events number prompts and runs as the trace does. A
/// trace that was begun and in which nothing was finished is taken back where the job was wrong.
/// @throws std::invalid_argument for wrong usage, engine::Cancelled (what was finished stays on disk), other exceptions
///         for failures
RunOutcome run(const RunJob& job, const std::vector<engine::RunPlan>& plans, const engine::Model& model,
               engine::Progress& progress, const RunEvents& events = {});

}  // namespace kvscope::program
