#pragma once

#include <optional>
#include <vector>

#include "policies/interface/policy.h"

namespace kvscope::policies {

/// Base of policies that read the prompt in chunks and merge neighbouring entries where they matter least. It reads the
/// parameters of `merging_parameters`; a policy on top of it says what key a pair gets.
class MergingPolicy : public Policy {
 public:
    Needs needs() const override;

    /// @throws BudgetError for a budget that merges something and has no room behind the sinks.
    void begin(const RunContext& context) override;
    PassPlan plan(const RunContext& context) const override;
    /// @throws std::logic_error, always.
    Selection select(LayerObservations&) override;
    bool stores_parts() const override { return true; }

    /// Pairs by (A_i + A_{i+1}) (n_i + n_{i+1}) / exp(i / gamma), the lowest first, of two that overlap the lower one:
    /// A is the attention on an entry over all heads and queries, n its tokens (1 with `size_factor` off), i counts
    /// from 1 behind the sinks.
    /// @throws ScoreError for an attention that is not a number.
    Merges merge(const MergeObservations& observations, int64_t n_merges) override;

 protected:
    explicit MergingPolicy(const ParameterValues& values);

    /// Fills the keys of the pairs that are given in `merges`, and how many of them are outside.
    virtual void merge_keys(const MergeObservations& observations, Merges& merges) = 0;

    int64_t sinks() const { return sinks_; }
    std::optional<int64_t> cap() const { return cap_; }
    const RunContext& context() const { return context_; }

 private:
    std::optional<int64_t> chunk_;
    int64_t sinks_;
    double gamma_;
    bool size_factor_;
    bool final_merge_;
    std::optional<int64_t> cap_;
    RunContext context_;
};

/// chunk, sinks, gamma, final_merge, cap.
std::vector<Parameter> merging_parameters();

}  // namespace kvscope::policies
