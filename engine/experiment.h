#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/common/progress.h"
#include "engine/decode/conversation.h"
#include "engine/model/model.h"
#include "engine/options/run_options.h"
#include "engine/prefill/prefill_observations.h"
#include "engine/prefill/prompt.h"
#include "policies/api/budget.h"
#include "policies/registry/registry.h"
#include "trace/records/records.h"
#include "trace/writer.h"

namespace kvscope::engine {

/// A policy with a budget. The policy's definition must outlive the plan.
struct RunPlan {
    policies::PolicySpec spec;
    policies::Budget budget;
    /// Recipe entry (JSON) of a recorded run whose policy file is missing or changed; empty for other runs.
    std::string stored_entry = {};

    [[nodiscard]] std::string label() const;  ///< see policies::run_label()
    /// Returns the label for messages. Omits the budget if the policy's parameters replace the budget.
    [[nodiscard]] std::string asked() const;
};

/// Options of an experiment. Options that belong to the model or to prompts have no effect here.
struct ExperimentOptions : RunOptions {
    bool keep_prefill = false;  ///< keep the prefill for take_prefill(); not for isolated runs
    bool keep_caches = false;   ///< keep the caches for take_caches(); not for isolated runs
    /// Whether to throw if no policy can run on the first prompt. Otherwise, impossible runs are recorded as failed.
    bool require_possible_run = true;
    std::string commit = {};  ///< commit of kvscope, which each run records; empty if unknown
    /// Isolated runs: number of equal sequences that are decoded as one batch, each with its own cache.
    int64_t batch = 1;
    /// Tokens that end an answer, in addition to the model's. With any, no token that ends an answer can be its first.
    std::vector<int32_t> end_ids = {};
};

struct Timings {
    int64_t n_prompt_tokens = 0;
    int64_t n_runs = 0;
    int64_t n_generated = 0;
    double prefill_s = 0;
    double record_s = 0;  ///< time to measure `full/*` and copy observations
    double select_s = 0;
    double question_s = 0;
    double decode_s = 0;
    double compare_s = 0;
    double write_s = 0;
    double total_s = 0;
};

/// Returns a canonical description of a trace's contents. Only the same recipe resumes a trace.
/// @throws checkpoint::CheckpointError if a policy's file cannot be read
[[nodiscard]] std::string recipe_json(const Model& model, std::span<const Prompt> prompts,
                                      std::span<const RunPlan> plans, const ExperimentOptions& options);

[[nodiscard]] std::string fingerprint_policy_files(const policies::PolicySpec& spec);

/// Puts the full run first and removes repeated full runs.
[[nodiscard]] std::vector<RunPlan> with_full_run_first(std::vector<RunPlan> plans);

/// Groups prompts, by index, that have the same tokens before the question and hide the question from policies.
[[nodiscard]] std::vector<std::vector<int>> group_by_shared_context(std::span<const Prompt> prompts);

/// Runs many policies with one prefill per context. Writes each prompt and run to the trace when it is finished, and
/// skips prompts and runs that the trace already contains.
class Experiment {
 public:
    /// @param plans must begin with the full run, which must not occur again; other plans may repeat
    Experiment(const Model& model, std::vector<RunPlan> plans, const ExperimentOptions& options, trace::Writer& writer,
               Progress& progress);
    /// Creates an experiment without a trace. Results go to `on_run`.
    Experiment(const Model& model, std::vector<RunPlan> plans, const ExperimentOptions& options, Progress& progress);
    ~Experiment();

    std::function<void(int prompt, int run, const trace::RunRecord&)> on_run;

    /// Called after a prompt was read and before decoding. All callbacks run on the engine's thread.
    std::function<void(int prompt, const trace::PromptRecord&)> on_prompt;
    /// Called before each unfinished prompt. Isolated runs call it once for all questions of a context.
    std::function<void(int prompt)> on_begun;
    /// Called when all prompts of a context are finished, with their numbers.
    std::function<void(const std::vector<int>& prompts)> on_finished;
    /// Whether a prompt needs no runs, although the trace lacks them.
    std::function<bool(int prompt)> is_skipped;
    /// Called with the attention (H, N) of each layer's window, as in `full/window_attention`. Not for isolated runs.
    std::function<void(std::span<const float> attention)> on_window_attention;
    /// Called when a run has selected its entries, before its answer.
    std::function<void(int prompt, int run, const trace::RunRecord&)> on_kept;
    std::function<void(int run, int32_t id)> on_token;
    /// Called when a run's answer is complete, before the comparison.
    std::function<void(int run)> on_answered;
    /// Called before each step of a run whose policy stores tokens while decoding. Returns true to switch the cache
    /// between whole and stored entries. `is_full` is true if the entries are whole now.
    std::function<bool(int run, bool is_full)> ask_switch;

    /// Runs all prompts. Records a failed run with its message and results so far, and continues with the others.
    /// @throws UsageError if `require_possible_run` is set and no run is possible on the first prompt
    void run(std::span<const Prompt> prompts);

    /// Moves out the last prefill, if `keep_prefill` is set; nullptr if the trace already contained the runs.
    [[nodiscard]] std::unique_ptr<PrefillObservations> take_prefill();

    /// Moves out one cache per plan of the last context, if `keep_caches` is set; nullptr for failed or recorded runs.
    [[nodiscard]] std::vector<std::unique_ptr<Conversation>> take_caches();

    [[nodiscard]] const Timings& timings() const;

 private:
    Experiment(const Model& model, std::vector<RunPlan> plans, const ExperimentOptions& options, trace::Writer* writer,
               Progress& progress);

    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace kvscope::engine
