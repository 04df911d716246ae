#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "policies/registry/registry.h"
#include "trace/reader.h"

namespace kvscope::analysis {

/// Repeats a finished run's selection with another budget or other parameters, using the policy's own code.
class WhatIf {
 public:
    /// Reads the run's scores and checks that they reproduce the recorded selection.
    /// @throws NothingToShow with the reason if the selection cannot be repeated, FigureError for an unknown prompt
    WhatIf(const trace::Reader& reader, int prompt, int run);

    [[nodiscard]] const policies::Definition& definition() const { return *recorded_.definition; }
    [[nodiscard]] const policies::ParameterValues& recorded() const { return recorded_.values; }
    [[nodiscard]] int64_t recorded_budget() const { return recorded_budget_; }
    [[nodiscard]] int64_t n_tokens() const { return n_tokens_; }  ///< N: prompt tokens that policies see

    /// Returns the changed parameters, and possibly "budget", that affect the scores and therefore need a new prefill.
    [[nodiscard]] std::vector<std::string> needs_prefill(const policies::ParameterValues& values,
                                                         std::optional<int64_t> budget = {}) const;

    /// Returns the run with these values and this budget, without results of decoding. Thread-safe.
    /// @throws policies::BudgetError if the policy rejects the budget, policies::ParameterError if a prefill is needed
    [[nodiscard]] trace::RunRecord operator()(const policies::ParameterValues& values, int64_t budget) const;

 private:
    [[nodiscard]] std::vector<policies::Selection> select(const policies::PolicySpec& spec, int64_t budget) const;

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

/// Returns a budget as a share of the full cache, at most 1. For the recorded budget, returns the recorded share.
[[nodiscard]] double budget_as_share_of_full_cache(int64_t budget, int64_t recorded_budget, double recorded_share,
                                                   int64_t n_tokens);

/// Returns why selections of this policy cannot be repeated: "it reads …". Empty if they can be repeated.
[[nodiscard]] std::string obstacle_to_what_if(const policies::PolicySpec& spec);

/// Returns a what-if record with the given selections, one for each layer.
/// @param window_attention (L, H, N), or empty if attention_kept is not needed
/// @throws std::invalid_argument if the selections do not match the trace's model and prompt
[[nodiscard]] trace::RunRecord what_if_record(const trace::Reader& reader, int prompt, const policies::PolicySpec& spec,
                                              int64_t budget, double share,
                                              const std::vector<policies::Selection>& selections,
                                              std::span<const float> window_attention);

}  // namespace kvscope::analysis
