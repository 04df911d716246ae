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

/// A policy at a budget. The definition has to outlive the plan.
struct RunPlan {
    policies::PolicySpec spec;
    policies::Budget budget;
    /// Of a run that a trace holds: its recipe entry (JSON), where the run cannot be made again because a file of the
    /// policy is missing or changed. Empty for all others.
    std::string stored_entry = {};

    std::string label() const;  ///< policies::run_label
    /// The same for messages about what was asked for: without the budget where parameters decide it.
    std::string asked() const;
};

/// Of the options, those of the model and of how prompts are put together have done their part before.
struct ExperimentOptions : RunOptions {
    bool keep_prefill = false;  ///< for `take_prefill`; shared mode only
    bool keep_caches = false;   ///< for `take_caches`; shared mode only
    /// Whether it is an error that no policy can run on the first prompt; on later ones runs are recorded as failed.
    bool require_possible_run = true;
};

/// Seconds spent, summed over prompts.
struct Timings {
    int64_t n_prompt_tokens = 0;
    int64_t n_runs = 0;
    int64_t n_generated = 0;
    double prefill_s = 0;
    double record_s = 0;  ///< full/* and copies for observations
    /// All policies' decisions and the gathering of what they keep; less than the runs' own where these decide beside
    /// one another.
    double select_s = 0;
    double question_s = 0;
    double decode_s = 0;
    double compare_s = 0;
    double write_s = 0;
    double total_s = 0;
};

/// The canonical description of all that a trace is to hold, the contents of files that policies read among it; a trace
/// is resumed only by the same.
/// @throws checkpoint::CheckpointError for such a file that cannot be read.
std::string recipe_json(const Model& model, std::span<const Prompt> prompts, std::span<const RunPlan> plans,
                        const ExperimentOptions& options);

/// Of the files that a policy's parameters name, those in a folder included; empty where there are none.
std::string fingerprint_of_files(const policies::PolicySpec& spec);

/// Puts the policy `full` first, where it is not there, and drops repetitions (its budget is the prompt's length).
std::vector<RunPlan> with_full_run(std::vector<RunPlan> plans);

/// The numbers of the prompts that share a context: those with the same tokens before a question that policies do not
/// see, adjacent or not. Each other prompt stands alone. Ordered by the first number of each list.
std::vector<std::vector<int>> by_context(std::span<const Prompt> prompts);

/// One prefill, many policies, one trace. Writes each prompt and each run as soon as it is finished and skips what the
/// trace already holds.
class Experiment {
 public:
    /// @param plans the full run first, and once; others that are the same are runs of their own
    Experiment(const Model& model, std::vector<RunPlan> plans, ExperimentOptions options, trace::Writer& writer,
               Progress& progress);
    /// Without a trace: what becomes of the runs is the business of `on_run`.
    Experiment(const Model& model, std::vector<RunPlan> plans, ExperimentOptions options, Progress& progress);
    ~Experiment();

    /// Called with every finished run, also a failed one; for tables and windows.
    std::function<void(int prompt, int run, const trace::RunRecord&)> on_run;

    /// On the way there, in this order. All of it comes from the engine's thread and should return soon.
    /// A prompt that was read, with `full/*`, before anything is decoded.
    std::function<void(int prompt, const trace::PromptRecord&)> on_prompt;
    /// Before a prompt that is not finished from an earlier time; of isolated runs once for all questions of a context.
    std::function<void(int prompt)> on_begun;
    /// What a run kept: its record as far as it is known before the answer.
    std::function<void(int prompt, int run, const trace::RunRecord&)> on_kept;
    /// Each token that a run generates for the prompt of the latest `on_prompt`.
    std::function<void(int run, int32_t id)> on_token;
    /// A run's answer has ended; it is compared next, and no longer asked by `ask_switch`.
    std::function<void(int run)> on_answered;
    /// Asked before each step of a run whose policy stores tokens while it decodes: whether its cache, which is whole
    /// now or not, is to change between the two behind that step. The record says when it did.
    std::function<bool(int run, bool is_full)> ask_switch;

    /// Prompts of the same context (see by_context) share one prefill and one compression.
    /// A run that fails alone is recorded as failed, with its message and with what it kept and decoded until then: its
    /// policy or its cache throws, decides what no cache can follow, or its logits hold NaN. The others go on as if it
    /// were not there. Where that is the full run, they are recorded without what is measured against it.
    /// @throws UsageError with `require_possible_run` where the first prompt can have none of the runs that are left to
    ///         do (before the prefill); Cancelled; what the writer throws; std::bad_alloc.
    void run(std::span<const Prompt> prompts);

    /// With `keep_prefill`, once: what the prefill of the last context that was run left behind, also after `run` was
    /// cancelled behind the prefill. nullptr where the trace held all of it already.
    std::unique_ptr<LivePrefill> take_prefill();

    /// With `keep_caches`, once: one for each plan, all of the last context that was run; nullptr for a run that
    /// failed, or that the trace held already. Empty where the trace held all of them.
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
