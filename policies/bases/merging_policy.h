#pragma once

#include <optional>
#include <vector>

#include "policies/api/definition.h"

namespace kvscope::policies {

/// Base of policies that merge neighboring entries with little attention. A derived policy computes the merged keys.
class MergingPolicy : public ReadsThroughOwnCache {
 public:
    /// @throws BudgetError if merging is needed and the budget leaves no entries after the sinks.
    void begin(const RunContext& context) override;
    [[nodiscard]] OwnCacheReading reading(const RunContext& context) const override;

    /// Merges the pairs with the lowest (A_i + A_{i+1}) (n_i + n_{i+1}) / exp(i / gamma), without overlap. A_i is the
    /// attention on entry i over all heads and queries, n_i its tokens (1 if `size_factor` is off), and i counts from 1
    /// after the sinks. @throws ScoreError if an attention is NaN.
    [[nodiscard]] Merges merge(const MergeObservations& observations, int64_t n_merges) override;

 protected:
    explicit MergingPolicy(const ParameterValues& values);

    /// Computes `keys` and `n_outside` of `merges`.
    virtual void merge_keys(const MergeObservations& observations, Merges& merges) = 0;

    [[nodiscard]] int64_t sinks() const { return sinks_; }
    [[nodiscard]] std::optional<int64_t> cap() const { return cap_; }
    [[nodiscard]] const RunContext& context() const { return context_; }

 private:
    std::optional<int64_t> chunk_;
    int64_t sinks_;
    double gamma_;
    bool size_factor_;
    bool final_merge_;
    std::optional<int64_t> cap_;
    RunContext context_;
};

[[nodiscard]] std::vector<Parameter> merging_parameters();

}  // namespace kvscope::policies
