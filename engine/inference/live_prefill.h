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

/// The observations of one prefill, all layers, kept in memory so that a selecting policy can decide again with any
/// parameters. Holds the dense keys and values (2 L G N d of the model's type, shared with the full run's cache),
/// attention sums and window attention (2 L H N f32), and the window's queries (L H w d f32). For SmolLM2-135M in bf16
/// at 4,096 tokens these are 94, 9 and 2 MB. Each window attention that a selection asks for (window, lambda, softmax
/// range) adds L H N f32; only the most recent ones are kept.
class LivePrefill {
 public:
    /// Every live prefill observes attention sums and at least this many window queries, enough for the default
    /// parameters of all selecting policies.
    static constexpr int least_window = 32;

    /// @param model_fingerprint identifies the model for maps that were trained for it
    /// @param token_ids (N) tokens that the policies see
    /// @param window number of queries for `window_attention`, at most N
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

    /// Returns, as a sentence, why a policy cannot decide from these observations; empty if it can. Policies that
    /// change the pass need their own prefill; others may need a wider window or hidden states. A budget that the
    /// policy cannot use is not reported here; `select` throws for it.
    std::string obstacle(const policies::PolicySpec& spec, int64_t budget) const;
    bool serves(const policies::PolicySpec& spec, int64_t budget) const { return obstacle(spec, budget).empty(); }

    /// Returns the selections of all layers that a run of this policy would make. Layers are decided in parallel if the
    /// policy allows it. May be called from several threads; the calls then run one after the other.
    /// @param budget entries per KV head and layer; ignored by `full`
    /// @param share budget as a fraction of the full cache, if it was given so; policies that count bytes use it
    /// instead of the rounded `budget`
    /// @throws UsageError if `serves` is false; BudgetError, ScoreError from the policy; SelectionError for selections
    /// that no cache can hold
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
