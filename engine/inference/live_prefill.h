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

/// What one prefill left behind for the policies, all layers, kept in memory, so that a selecting policy can decide
/// again with any parameters. It holds the dense keys and values, 2 L G N d of the model's type (shared with the full
/// run's cache), attention sums and window attention, 2 L H N f32, and the window's queries,
/// L H w d f32: 94, 9 and 2 MB for SmolLM2-135M in bf16 at 4,096 tokens. Each window attention that a selection asks
/// for (window, lambda, softmax range) adds L H N f32; the latest few are kept.
class LivePrefill {
 public:
    /// Sums and this many window queries are observed for every live prefill, so that the defaults of all selecting
    /// policies are served.
    static constexpr int least_window = 32;

    /// @param model_fingerprint what maps that were trained for the model are tied to
    /// @param token_ids         (N) what the policies see
    /// @param window            of `window_attention`; cut to N
    LivePrefill(policies::ModelShape shape, std::string model_fingerprint, std::vector<int32_t> token_ids, int window);
    ~LivePrefill();

    /// Copies what was observed of the next layer, in ascending order, and shares its cache.
    void add_layer(policies::LayerObservations& observed, const DenseLayer& dense);

    const policies::ModelShape& shape() const { return shape_; }
    int64_t n_tokens() const { return static_cast<int64_t>(token_ids_.size()); }
    std::span<const int32_t> token_ids() const { return token_ids_; }
    /// Queries that were observed: the widest window a policy can have.
    int n_window() const;
    /// Queries that `window_attention` is the mean of: the attribute `window` of `full`.
    int window() const { return window_; }
    /// (L, H, N) as `full/window_attention`.
    std::span<const float> window_attention() const { return window_attention_; }

    /// Why a policy cannot decide from what was observed, as a sentence; empty where it can. Policies that change the
    /// pass need one of their own, and others a wider window or hidden states. A budget that the policy cannot take is
    /// no reason: `select` throws for it.
    std::string obstacle(const policies::PolicySpec& spec, int64_t budget) const;
    bool serves(const policies::PolicySpec& spec, int64_t budget) const { return obstacle(spec, budget).empty(); }

    /// Selections of all layers, as a run of this policy at this budget (entries per KV head and layer; ignored by
    /// `full`) makes them, layers in parallel where the policy allows it. One after the other where several threads
    /// ask.
    /// @param share of the full cache, where that is what was asked for: policies of bytes go by it, not by the entries
    ///              it was rounded to
    /// @throws UsageError where `serves` is false; BudgetError, ScoreError as the policy does; SelectionError for what
    ///         no cache can hold.
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
