#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/cache/dense_cache.h"
#include "engine/inference/observed_layer.h"
#include "policies/interface/policy.h"
#include "policies/interface/registry.h"

namespace kvscope::engine {

/// Observations of one prefill, kept in memory so that a selecting policy can decide again with any parameters. Holds
/// keys and values (2 L G N d of the model's type, shared with the full run's cache), attention sums and window
/// attention (2 L H N f32), and the window's queries (L H w d f32). Each further window attention adds L H N f32; the
/// last few are kept.
class LivePrefill {
 public:
    /// Least number of observed window queries, enough for the default parameters of all selecting policies.
    static constexpr int least_window = 32;

    /// @param model_fingerprint identifies the model for maps that were trained for it
    /// @param token_ids (N) tokens that the policies see
    LivePrefill(policies::ModelShape shape, std::string model_fingerprint, std::vector<int32_t> token_ids, int window);
    ~LivePrefill();

    /// Adds the next layer, in ascending order: copies its observations and shares its cache.
    void add_layer(policies::LayerObservations& observed, const DenseLayer& dense);

    const policies::ModelShape& shape() const { return shape_; }
    int64_t n_tokens() const { return static_cast<int64_t>(token_ids_.size()); }
    std::span<const int32_t> token_ids() const { return token_ids_; }
    /// Number of observed queries: the widest window that a policy can use.
    int n_window() const;
    /// Number of queries that `window_attention` averages over: the attribute `window` of `full`.
    int window() const { return window_; }
    /// Returns the window attention, (L, H, N), as in `full/window_attention`.
    std::span<const float> window_attention() const { return window_attention_; }

    /// Returns, as a sentence, why a policy cannot decide from these observations; empty if it can. A budget that the
    /// policy cannot use is not reported here; `select` throws for it.
    std::string obstacle(const policies::PolicySpec& spec, int64_t budget) const;
    bool serves(const policies::PolicySpec& spec, int64_t budget) const { return obstacle(spec, budget).empty(); }

    /// Returns the selections of all layers that a run of this policy would make. Thread-safe, one call at a time.
    /// @param budget entries per KV head and layer; ignored by `full`
    /// @param share the budget as a share of the full cache, if given so; used by policies that count bytes
    /// @throws UsageError if `serves` is false; BudgetError, ScoreError, SelectionError if the policy fails
    std::vector<policies::Selection> select(const policies::PolicySpec& spec, int64_t budget, uint64_t seed,
                                            std::optional<double> share = std::nullopt) const;

 private:
    void decide(const policies::PolicySpec& spec, policies::Policy& policy, size_t layer,
                policies::Selection& selection) const;
    std::vector<policies::Selection> select_in_order(const policies::PolicySpec& spec, policies::Policy& policy) const;
    policies::RunContext context(const policies::PolicySpec& spec, int64_t budget, uint64_t seed,
                                 std::optional<double> share) const;

    policies::ModelShape shape_;
    std::string model_fingerprint_;
    std::vector<int32_t> token_ids_;
    int window_;
    std::vector<float> window_attention_;
    std::vector<std::unique_ptr<ObservedLayer>> layers_;
    mutable std::mutex mutex_;
};

}  // namespace kvscope::engine
