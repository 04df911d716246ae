#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/progress.h"
#include "engine/prompt.h"
#include "engine/sampler.h"
#include "policies/interface/budget.h"
#include "policies/interface/registry.h"
#include "trace/records.h"
#include "trace/writer.h"

namespace kvscope::engine {

/// A policy at a budget. The definition has to outlive the plan.
struct RunPlan {
    policies::PolicySpec spec;
    policies::Budget budget;

    std::string label() const;  ///< "snapkv:window=8 @ 128"
};

struct ExperimentOptions {
    int64_t n_new = 64;  ///< tokens to generate at most
    SamplingOptions sampling;
    bool isolated = false;  ///< one run at a time, as a server would
    uint64_t seed = 0;      ///< of policies that draw; `sampling.seed` is that of the answers
    int window = 32;        ///< of `full/*`; larger where a policy needs more
    bool compare = true;    ///< step_kl, step_agreement, output_error
    bool record = true;     ///< full/*
};

/// Seconds spent, summed over prompts.
struct Timings {
    int64_t n_prompt_tokens = 0;
    int64_t n_runs = 0;
    int64_t n_generated = 0;
    double prefill_s = 0;
    double record_s = 0;  ///< full/* and copies for observations
    double select_s = 0;  ///< all policies' decisions and the gathering of what they keep
    double question_s = 0;
    double decode_s = 0;
    double compare_s = 0;
    double write_s = 0;
    double total_s = 0;
};

/// The canonical description of all that a trace is to hold; a trace is resumed only by the same.
std::string recipe_json(const Model& model, std::span<const Prompt> prompts, std::span<const RunPlan> plans,
                        const ExperimentOptions& options);

/// Puts the policy `full` first, where it is not there, and drops repetitions (its budget is the prompt's length).
std::vector<RunPlan> with_full_run(std::vector<RunPlan> plans);

/// One prefill, many policies, one trace. Writes each prompt and each run as soon as it is finished and skips what the
/// trace already holds.
class Experiment {
 public:
    /// @param plans as `with_full_run` returns them
    Experiment(const Model& model, std::vector<RunPlan> plans, ExperimentOptions options, trace::Writer& writer,
               Progress& progress);
    ~Experiment();

    /// Called with every finished run, also a failed one; for tables and windows.
    std::function<void(int prompt, int run, const trace::RunRecord&)> on_run;

    /// Prompts with the same context (query_aware off) share one prefill and one compression; others stand alone.
    /// @throws UsageError where no policy can take any of the budgets (before the prefill); Cancelled; what the writer
    ///         throws. A run that fails alone is recorded as failed, with its message.
    void run(std::span<const Prompt> prompts);

    const Timings& timings() const;
    int n_failed() const;

 private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace kvscope::engine
