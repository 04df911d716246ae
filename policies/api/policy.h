#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policies/api/kv_projection_weights.h"
#include "policies/api/memo.h"
#include "policies/api/observations.h"
#include "policies/api/scores.h"
#include "policies/api/stored_layer.h"

namespace kvscope::policies {

/// The prompt, budget and model of one run. Constant during the run.
struct RunContext {
    ModelShape shape;
    /// N, the number of prompt tokens that may be compressed. Excludes a question that the policy does not see.
    int64_t n_tokens = 0;
    /// B, the entries kept per KV head and layer, window and sinks included. B >= N keeps everything.
    int64_t budget = 0;
    /// Requested share of entries or bytes. nullopt if the budget is a count.
    std::optional<double> budget_share;
    uint64_t seed = 0;
    std::string_view model_fingerprint{};  ///< identifies the model; empty if no model is loaded
    std::span<const int32_t> token_ids;    ///< shape (N)
    int64_t n_vocabulary = 0;              ///< size of the model's vocabulary; 0 if no model is loaded
    /// Tokenizes a text without parsing special tokens. Empty if no model is loaded.
    std::function<std::vector<int32_t>(std::string_view)> tokenize;
    /// Returns a layer's key or value projection in f32. Empty if no model is loaded.
    std::function<Projection(int layer, Projected)> projection{};
    /// Returns the lower triangle of the sum of y y^T (G d, G d) over a calibration text. y is a token's keys (before
    /// RoPE) or values, without the projection's bias. Empty if no model is loaded.
    std::function<std::vector<double>(int layer, Projected)> calibration{};
    std::shared_ptr<ModelMemo> memo{};

    /// Returns a value that depends on the model's weights alone, from `memo` if a model is loaded.
    template <class T>
    [[nodiscard]] std::shared_ptr<const T> of_weights(const std::string& key, const std::function<T()>& make) const {
        return memo ? memo->get(key, make) : std::make_shared<const T>(make());
    }

    /// Returns the budget in bytes as a share of the full cache, at most 1.
    [[nodiscard]] double share_of_bytes() const;
};

/// Data that the prefill must collect for a policy. Runs share the collected data.
struct Needs {
    int window_queries = 0;       ///< number of last prompt tokens whose post-RoPE queries are needed
    bool attention_sums = false;  ///< exact attention sums over all prompt queries (H2O)
    bool hidden_states = false;   ///< each layer's input (N, hidden)
    /// Whether the policy reads keys and values. Policies that store parts or merge values always read them.
    bool entries = false;
    bool keys_before_rope = false;
    bool calibration = false;  ///< RunContext::calibration, which the engine then computes before it reads a prompt
    bool projection_inputs = false;  ///< each layer's input to its projections (N, hidden)
    /// Attention of the full cache's answer. The engine generates this answer before the policy selects entries.
    bool answer_attention = false;
};

/// Recorded scores (R, N) of one layer, where R is G or H. At most one of `scores` and `scores_f64` is filled.
struct LayerScores {
    Granularity granularity = Granularity::kv_head;
    Scores<float> scores;
    Scores<double> scores_f64;
    std::vector<float> channel_scores{};  ///< (R, d) or empty
};

/// The entries that one layer keeps, and the scores that ranked them.
struct Selection {
    Granularity granularity = Granularity::kv_head;
    std::vector<std::vector<uint32_t>> rows;  ///< kept prompt positions of each row (R is G or H), strictly ascending
    /// (R, N) scores, NaN for entries that are not ranked. At most one of `scores` and `scores_f64` is filled.
    Scores<float> scores;
    Scores<double> scores_f64;
    std::vector<float> channel_scores;  ///< (R, d) scores of key channels; empty if the policy ranks no channels
    std::vector<float> head_jsd;        ///< (R, R) Jensen-Shannon divergence in nats, or empty
    /// Storage that replaces whole keys and values of the kept entries, or nullopt if they are stored whole.
    std::optional<StoredLayer> stored;
};

/// Keeps every token in each KV head.
[[nodiscard]] Selection select_all_tokens(const RunContext& context);

/// A KV-cache compression policy for one run. These functions suffice for a policy that selects entries after each
/// layer of the prefill. All other tasks have interfaces of their own in further_interfaces.h, which a policy's class
/// implements in addition. All data are plain arrays, so that the app can call policies without libtorch.
///
/// The engine calls a policy in this order. A call with the name of an interface takes place only if the policy
/// implements this interface. `needs` is also called before `begin`.
///
///   before the prompt     begin, needs
///                         AppendsTokens::appended, LooksAhead::lookahead, FiltersPrompt::filter
///                         ReadsThroughOwnCache::reading
///                         PreparesWeights::prepare for each layer
///   FiltersPrompt         select once
///   ReadsThroughOwnCache  before a chunk and after the prompt: merge for each layer, repeated until the layer holds at
///                         most B entries
///   LooksAhead            Gathers::gather and draft for each layer, then the calls of all other policies
///   all other policies    for each layer in ascending order: observe. Then, for each layer that
///                         DecidesInOrder::decided_at permits: Gathers::gather, select, MergesValues::merge_values
///   each decoded token    for each layer, after its attention: EvictsWhileDecoding::step, or
///                         StoresWhileDecoding::whole_tokens and store, or ReadsThroughOwnCache::merge.
///                         `store` and `merge` are called only if there are tokens to store or merge.
///
/// A what-if in the app calls begin and then either observe and select, or select_from_scores, for each layer. Unless
/// the policy implements DecidesInOrder, other objects of the class may decide other layers.
class Policy {
 public:
    virtual ~Policy() = default;

    /// Computes the layers' budgets. @throws BudgetError if the policy cannot use the budget
    virtual void begin(const RunContext& context) = 0;

    /// Returns the observations that the policy uses.
    [[nodiscard]] virtual Needs needs() const { return {}; }

    /// Observes a layer before any run selects entries there. The arrays stay valid until the last run that decides in
    /// this layer has selected. For a later decision (DecidesInOrder), copy the arrays.
    virtual void observe(LayerObservations&) {}

    /// Selects the entries that the layer keeps. For B >= N, keeps all and still returns scores. @throws ScoreError
    [[nodiscard]] virtual Selection select(LayerObservations&) = 0;

    /// Repeats the decision of `select` from recorded scores, if the policy uses scores.
    /// @throws ScoreError for invalid scores; std::logic_error if the decision needs more than scores
    [[nodiscard]] virtual Selection select_from_scores(int layer, LayerScores scores);

    /// Whether kept keys keep their positions (prompt) or are rotated again to consecutive positions (cache).
    [[nodiscard]] virtual Positions positions() const { return Positions::prompt; }
};

}  // namespace kvscope::policies
