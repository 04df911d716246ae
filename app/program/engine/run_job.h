#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/experiment.h"
#include "engine/head_profile.h"
#include "trace/shard.h"

namespace kvscope::program {

/// A context and its questions. Without questions, the context alone is the prompt.
struct PromptText {
    std::string name;
    std::string context;
    std::vector<std::string> questions;
    std::string origin = {};                ///< file or option that messages name; may be empty
    std::vector<std::string> answers = {};  ///< accepted answers to each question; empty if unknown
};

/// Settings of `kvscope run`, `eval` and `profile-heads`, or of a run started in the app.
struct RunJob {
    std::filesystem::path model;  ///< empty for the default model
    std::vector<PromptText> prompts;
    const engine::Task* task = nullptr;  ///< if set, its samples are run instead of `prompts`
    policies::ParameterValues task_values;
    /// Answers each sample of `task` twice: policies see the question, and policies do not. `experiment.query_aware`
    /// has no effect then.
    bool asks_in_both_ways = false;
    /// Measures heads with the samples of head_profile_task(). The output is a head-importance file, not a trace.
    std::optional<engine::HeadMeasure> profile;
    std::string prompt_from;  ///< prompts of a trace instead of `prompts`: "trace.h5", or "trace.h5:0,2" for some
    std::vector<std::string> policies;
    int same_window = 0;  ///< replaces the default of the policies' parameter `window`; 0: each has its own default
    std::vector<std::string> budgets;
    engine::ExperimentOptions experiment;
    std::filesystem::path output;       ///< file of the trace; a shard has a file of its own
    std::optional<trace::Shard> shard;  ///< if set, only a part of the prompts or samples is run
    uint64_t most_disk_bytes = 0;       ///< the job stops before its trace exceeds this size; 0: no limit
    bool force = false;
    bool requires_files =
        true;  ///< whether the job is refused if a policy's file is missing; otherwise only its runs fail
};

/// Returns a job that runs twelve policies at two budgets on the demo prompt.
[[nodiscard]] RunJob demo_job(const std::filesystem::path& output);

/// Lets a job answer a task's samples instead of prompts, without comparisons and recorded measures.
void set_task(RunJob& job, const engine::Task& task, policies::ParameterValues values);

/// Reads the files that parameters of `task` name, and those of assets/. @throws std::runtime_error if a file is
/// unreadable; std::invalid_argument if its text is not UTF-8
[[nodiscard]] engine::TaskOptions read_task_files(const engine::Task& task, policies::ParameterValues values);

/// Returns each run once, the full run first. @throws std::invalid_argument for malformed policies or budgets
[[nodiscard]] std::vector<engine::RunPlan> run_plans_of_job(const RunJob& job);

/// Returns one line for each setting without effect, such as an unused budget or a repeated run. @throws as
/// run_plans_of_job
[[nodiscard]] std::vector<std::string> settings_without_effect(const RunJob& job);

/// Returns one line per budget for this prompt: "budget 0.1: 195 of 1948 entries kept (10.0 %), …".
[[nodiscard]] std::vector<std::string> budget_lines(std::span<const engine::RunPlan> plans,
                                                    const engine::Prompt& prompt, const engine::Transformer& model);

}  // namespace kvscope::program
