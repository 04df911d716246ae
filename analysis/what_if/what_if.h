#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "policies/interface/registry.h"
#include "trace/reader.h"

namespace kvscope::analysis {

/// A finished run's selection, made again with another budget or other parameters from what the trace holds: all that
/// it needs is read once, so that a slider can follow. The code that decides is the policy's own.
class WhatIf {
 public:
    /// Reads the run's scores and the window's attention, and makes the recorded selection once: what does not come
    /// out as the trace has it cannot be trusted with another budget.
    /// @throws NothingToShow saying why this run cannot be recomputed (it failed; this build does not know the policy
    ///         or its parameters; it runs the model a second time; it ranks, but the trace has no scores; its scores
    ///         do not give its kept sets), FigureError where the trace has no such prompt, and what the reader throws.
    WhatIf(const trace::Reader& reader, int prompt, int run);

    const policies::Definition& definition() const { return *recorded_.definition; }
    const policies::ParameterValues& recorded() const { return recorded_.values; }
    int64_t recorded_budget() const { return recorded_budget_; }
    int64_t n_tokens() const { return n_tokens_; }  ///< N: what policies see of the prompt

    /// The parameters that differ from the recorded ones and act before the scores are made, so that the prefill would
    /// have to be repeated. Where a parameter binds scores to the budget, whatever acts after them is among these, and
    /// the word "budget" for another budget than the recorded one.
    std::vector<std::string> needs_prefill(const policies::ParameterValues& values,
                                           std::optional<int64_t> budget = {}) const;

    /// The run as these values and this budget give it: kept sets, scores, head_jsd where the policy computes it,
    /// attention_kept, predicted bytes. Thread-safe.
    /// @throws policies::BudgetError for a budget that the policy cannot take, policies::ParameterError for values of
    ///         another policy and for those that need the prefill repeated.
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

/// A budget as a share of the full cache: the recorded one where it is the recorded budget, since a share may lie
/// between two counts of entries; else its entries by N, at most 1.
double share_of_budget(int64_t budget, int64_t recorded_budget, double recorded_share, int64_t n_tokens);

/// Why neither a trace's scores nor the prefill of a window tell what the policy would have done with another budget or
/// parameter: "it reads …"; empty where they do.
std::string obstacle_to_what_if(const policies::PolicySpec& spec);

/// The same record from selections made elsewhere, one for each layer (a prefill in memory). `share` is the budget's,
/// as share_of_budget gives it. `window_attention` is (L, H, N), or empty: then attention_kept stays empty. head_bytes
/// and cache_bytes_predicted are what the kept entries need; nothing that only a decode can tell is filled.
/// @throws std::invalid_argument where the selections do not fit the trace's model and prompt.
trace::RunRecord what_if_record(const trace::Reader& reader, int prompt, const policies::PolicySpec& spec,
                                int64_t budget, double share, const std::vector<policies::Selection>& selections,
                                std::span<const float> window_attention);

}  // namespace kvscope::analysis
