#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "policies/interface/registry.h"
#include "trace/reader.h"

namespace kvscope::analysis {

/// Repeats a finished run's selection with another budget or other parameters, using the policy's own code. All data is
/// read once, so that results follow a slider.
class WhatIf {
 public:
    /// Reads the run's scores and the window's attention, and repeats the recorded selection as a check.
    /// @throws NothingToShow with the reason if the selection cannot be repeated (failed run; unknown policy or
    ///         parameters; policy runs the model twice; missing scores; scores that do not reproduce the kept sets),
    ///         FigureError if the trace has no such prompt, and what the reader throws
    WhatIf(const trace::Reader& reader, int prompt, int run);

    const policies::Definition& definition() const { return *recorded_.definition; }
    const policies::ParameterValues& recorded() const { return recorded_.values; }
    int64_t recorded_budget() const { return recorded_budget_; }
    int64_t n_tokens() const { return n_tokens_; }  ///< N: prompt tokens that policies see

    /// Returns the changed parameters that need a new prefill because they affect the scores. If a parameter ties the
    /// scores to the budget, all later parameters are included, as is the word "budget" for a new budget.
    std::vector<std::string> needs_prefill(const policies::ParameterValues& values,
                                           std::optional<int64_t> budget = {}) const;

    /// Returns the run with these values and budget: kept sets, scores, head_jsd if the policy computes it,
    /// attention_kept and predicted bytes. Thread-safe.
    /// @throws policies::BudgetError for a budget that the policy rejects, policies::ParameterError for values of
    /// another
    ///         policy and for those that need a new prefill
    trace::RunRecord operator()(const policies::ParameterValues& values, int64_t budget) const;

 private:
    std::vector<policies::Selection> select(const policies::PolicySpec& spec, int64_t budget) const;

    trace::ModelAttributes model_;
    policies::PolicySpec recorded_;
    int64_t recorded_budget_ = 0;
    double recorded_share_ = 1;
    int64_t n_tokens_ = 0;
    uint64_t seed_ = 0;
    std::vector<int32_t> token_ids_;
    std::vector<policies::LayerScores> scores_;
    std::vector<float> window_attention_;
};

/// Returns a budget as a share of the full cache. The recorded budget keeps its recorded share, which may lie between
/// two numbers of entries; other budgets are divided by N, at most 1.
double share_of_budget(int64_t budget, int64_t recorded_budget, double recorded_share, int64_t n_tokens);

/// Returns why the policy's selection at another budget or parameter cannot be predicted from a trace or prefill: "it
/// reads …"; empty if it can.
std::string obstacle_to_what_if(const policies::PolicySpec& spec);

/// Returns the what-if record of selections computed by the caller, one per layer. Contains no results of decoding.
/// @param share of the budget, from share_of_budget()
/// @param window_attention (L, H, N), or empty; attention_kept is then empty
/// @throws std::invalid_argument if the selections do not match the trace's model and prompt
trace::RunRecord what_if_record(const trace::Reader& reader, int prompt, const policies::PolicySpec& spec,
                                int64_t budget, double share, const std::vector<policies::Selection>& selections,
                                std::span<const float> window_attention);

}  // namespace kvscope::analysis
