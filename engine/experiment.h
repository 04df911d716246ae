#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/common/progress.h"
#include "engine/inference/conversation.h"
#include "engine/inference/live_prefill.h"
#include "engine/inference/prompt.h"
#include "engine/model/model.h"
#include "engine/options/run_options.h"
#include "policies/interface/budget.h"
#include "policies/interface/registry.h"
#include "trace/records.h"
#include "trace/writer.h"

namespace kvscope::engine {

/// A policy with a budget. The policy's definition must outlive the plan.
struct RunPlan {
    policies::PolicySpec spec;
    policies::Budget budget;
    /// Recipe entry (JSON) of a recorded run whose policy's file is missing or changed; empty for all other runs.
    std::string stored_entry = {};

    std::string label() const;  ///< policies::run_label
    /// Returns the label for messages, without the budget if parameters of the policy decide it.
    std::string asked() const;
};

/// Options of an experiment. Those of model and prompts were applied before.
struct ExperimentOptions : RunOptions {
    bool keep_prefill = false;  ///< keep the prefill for `take_prefill`; not for isolated runs
    bool keep_caches = false;   ///< keep the caches for `take_caches`; not for isolated runs
    /// Whether to throw if no policy can run on the first prompt; on later prompts, such runs are recorded as failed.
    bool require_possible_run = true;
};

/// Times in seconds, summed over prompts.
struct Timings {
    int64_t n_prompt_tokens = 0;
    int64_t n_runs = 0;
    int64_t n_generated = 0;
    double prefill_s = 0;
    double record_s = 0;  ///< time for measuring full/* and for copying observations
    /// Time of all decisions; less than the sum over runs if these decide in parallel.
    double select_s = 0;
    double question_s = 0;
    double decode_s = 0;
    double compare_s = 0;
    double write_s = 0;
    double total_s = 0;
};

/// Returns the canonical description of a trace's contents. A trace can be resumed only with the same recipe.
/// @throws checkpoint::CheckpointError if a policy's file cannot be read
std::string recipe_json(const Model& model, std::span<const Prompt> prompts, std::span<const RunPlan> plans,
                        const ExperimentOptions& options);

/// Returns the fingerprint of the files that a policy's parameters name; empty if there are none.
std::string fingerprint_of_files(const policies::PolicySpec& spec);

/// Puts the policy `full` first and removes repeated full runs, whose budget is always the prompt's length.
std::vector<RunPlan> with_full_run(std::vector<RunPlan> plans);

/// Returns the indices of the prompts, grouped by context: prompts that policies see without the question share a
/// context if the tokens before the question are equal.
std::vector<std::vector<int>> by_context(std::span<const Prompt> prompts);

/// Runs many policies after one prefill for each context. Writes prompts and runs to a trace as soon as they are
/// finished, and skips those that it already holds.
class Experiment {
 public:
    /// @param plans the full run first and only once; other equal plans are separate runs
    Experiment(const Model& model, std::vector<RunPlan> plans, ExperimentOptions options, trace::Writer& writer,
               Progress& progress);
    /// Creates an experiment without a trace, whose results go to `on_run`.
    Experiment(const Model& model, std::vector<RunPlan> plans, ExperimentOptions options, Progress& progress);
    ~Experiment();

    /// Called with every finished or failed run.
    std::function<void(int prompt, int run, const trace::RunRecord&)> on_run;

    /// Called on the engine's thread, like the callbacks below, with a prompt that was read, before decoding.
    std::function<void(int prompt, const trace::PromptRecord&)> on_prompt;
    /// Called before each prompt that is not already complete; for isolated runs, once for all questions of a context.
    std::function<void(int prompt)> on_begun;
    /// Called with a run's kept entries, before its answer.
    std::function<void(int prompt, int run, const trace::RunRecord&)> on_kept;
    /// Called with each token that a run generates.
    std::function<void(int run, int32_t id)> on_token;
    /// Called when a run's answer is complete, before the comparison.
    std::function<void(int run)> on_answered;
    /// Called before each step of a run whose policy stores tokens while decoding. Returns true to switch its cache
    /// between the whole and the stored form; `is_full` says whether it is whole now.
    std::function<bool(int run, bool is_full)> ask_switch;

    /// Runs all prompts. If a run fails, it is recorded with its message and results so far, and the others continue.
    /// If the full run fails, the others are recorded without comparisons.
    /// @throws UsageError if `require_possible_run` is set and none of the remaining runs is possible on the first
    /// prompt; exceptions of the writer; std::bad_alloc
    void run(std::span<const Prompt> prompts);

    /// Returns the prefill of the last context if `keep_prefill` is set; nullptr if the trace held all runs.
    std::unique_ptr<LivePrefill> take_prefill();

    /// Returns the caches of the last context if `keep_caches` is set; nullptr for failed or recorded runs.
    std::vector<std::unique_ptr<Conversation>> take_caches();

    const Timings& timings() const;
    int n_failed() const;

 private:
    Experiment(const Model& model, std::vector<RunPlan> plans, ExperimentOptions options, trace::Writer* writer,
               Progress& progress);

    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace kvscope::engine
