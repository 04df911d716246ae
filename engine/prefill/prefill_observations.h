#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/cache/dense_cache.h"
#include "engine/prefill/observed_layer.h"
#include "policies/registry/registry.h"

namespace kvscope::engine {

/// Observations of one prefill, from which policies can select again with other parameters. Keys and values share the
/// memory of the full run's cache. Sums and window attention need 2 L H N f32, and queries L H w d f32.
class PrefillObservations {
 public:
    /// Smallest number of observed queries, enough for the default parameters of all policies.
    static constexpr int least_window = 32;

    /// @param model_fingerprint selects maps that were trained for the model
    /// @param token_ids (N) tokens that the policies see
    PrefillObservations(policies::ModelShape shape, std::string model_fingerprint, std::vector<int32_t> token_ids,
                        int window);
    ~PrefillObservations();

    /// Adds the next layer. Copies its observations and shares its cache.
    void add_layer(policies::LayerObservations& observed, const DenseLayer& dense);

    [[nodiscard]] const policies::ModelShape& shape() const { return shape_; }
    [[nodiscard]] int64_t n_tokens() const { return static_cast<int64_t>(token_ids_.size()); }
    [[nodiscard]] std::span<const int32_t> token_ids() const { return token_ids_; }
    /// Number of observed queries, the largest window that a policy can use.
    [[nodiscard]] int n_window() const;
    /// Number of queries over which window_attention() averages.
    [[nodiscard]] int window() const { return window_; }
    /// Returns the window attention, (L, H, N), as in `full/window_attention`.
    [[nodiscard]] std::span<const float> window_attention() const { return window_attention_; }

    /// Returns why a policy cannot use these observations; empty if the policy can. Does not check the budget.
    [[nodiscard]] std::string obstacle(const policies::PolicySpec& spec, int64_t budget) const;

    /// Returns the entries that a run of this policy would select, for all layers. Thread-safe, one call at a time.
    /// @param budget entries per KV head and layer; ignored by `full`
    /// @param share budget as a share of the full cache, for policies that count bytes
    /// @throws UsageError if obstacle() is not empty; BudgetError, ScoreError, SelectionError if the policy fails
    std::vector<policies::Selection> select(const policies::PolicySpec& spec, int64_t budget, uint64_t seed,
                                            std::optional<double> share = std::nullopt) const;

 private:
    void decide(const policies::PolicySpec& spec, policies::Policy& policy, size_t layer,
                policies::Selection& selection) const;
    [[nodiscard]] std::vector<policies::Selection> select_in_order(const policies::PolicySpec& spec,
                                                                   const policies::CreatedPolicy& policy) const;
    [[nodiscard]] policies::RunContext context(const policies::PolicySpec& spec, int64_t budget, uint64_t seed,
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
