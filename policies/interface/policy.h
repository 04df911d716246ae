#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policies/interface/budget.h"
#include "policies/interface/kv_projection_weights.h"
#include "policies/interface/merge_observations.h"
#include "policies/interface/model_memo.h"
#include "policies/interface/observations.h"
#include "policies/interface/parameters.h"
#include "policies/interface/scores.h"
#include "policies/interface/storage_switching.h"
#include "policies/interface/stored_layer.h"
#include "policies/interface/token_classifier_settings.h"

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
    bool own_cache = false;  ///< the prompt is read through the policy's own cache; requires PassPlan::chunk
    /// Requests the gradient of each chunk's loss with respect to the cached keys. Costs another forward and backward
    /// pass. Requires `own_cache`.
    bool key_gradients = false;
};

/// Changes that a policy makes to the prefill. By default, runs share one prefill.
struct PassPlan {
    /// Pseudo tokens appended to the prompt for this run. Their queries are observed, and their entries are dropped.
    std::vector<int32_t> appended_ids;
    std::vector<int64_t> appended_positions;  ///< same length as `appended_ids`
    /// Layer that filters the prompt, or -1. `select` is called only after this layer's prefill. The model then runs
    /// again on the selected tokens, renumbered from 0, and every layer keeps all of these tokens.
    int filter_layer = -1;
    /// Filters the prompt by a token classifier. `select` is called once, with only `token_probabilities`.
    std::optional<TokenClassifierSettings> classification;
    /// Number of tokens generated greedily from the draft cache before the decision, or 0. `draft` selects the entries
    /// of the draft cache. `select` receives the generated tokens as appended tokens.
    int64_t lookahead = 0;
    /// Number of tokens per chunk if the policy reads the prompt through its own cache, or 0. With chunks, `merge` is
    /// called instead of `select`. If the cache holds more than B entries, the next chunk is read twice: first for its
    /// attention, by which `merge` chooses earlier entries, then to keep the chunk's entries.
    int64_t chunk = 0;
    /// Whether entries are merged down to B after the last chunk, by the attention of the prompt's last query.
    bool final_merge = true;
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

struct StepObservations {
    int layer = 0;
    int64_t step = 0;      ///< decoded tokens before this one
    int64_t position = 0;  ///< position of the token just appended
    struct Row {
        std::span<const uint32_t> positions;  ///< in storage order; the new token is last
        std::span<const float> attention;     ///< (query heads of this row, entries) softmax weights at this step
        int n_query_heads = 0;
    };
    std::vector<Row> rows;
};

struct WholeTokens {
    int64_t first = 0;  ///< number of first prompt tokens
    int64_t last = 0;   ///< number of last tokens, decoded ones included
};

/// Tokens of a layer that change from whole to partial storage, the same in all rows.
struct ReducedTokens {
    int layer = 0;
    std::span<const uint32_t> positions{};  ///< (n) ascending
    EntriesView keys{};                     ///< (G, n, d) after RoPE
    /// (G, n, d) in f32, computed from `keys`, which are rounded to the model's type.
    EntriesView keys_before_rope{};
    EntriesView values{};  ///< shape (G, n, d)
};

/// How often earlier entries are merged down to the budget during decoding. Entries of a question are never merged.
struct DecodeMerging {
    int64_t every = 0;  ///< number of decoded tokens between two merges; 0 for never
    int64_t budget = 0;
    int64_t n_tokens = 0;  ///< N of the run; entries from N up to the first decoded token belong to a question
};

/// For each row, the ascending storage indices to drop after a step. Empty if nothing is dropped.
using StepEvictions = std::vector<std::vector<uint32_t>>;

/// A KV-cache compression policy for one run. The engine calls plan, begin and prepare, then observe and select for the
/// layers in ascending order, then step. Policies take plain arrays, because the app also calls them.
class Policy {
 public:
    virtual ~Policy() = default;

    [[nodiscard]] virtual Needs needs() const = 0;

    [[nodiscard]] virtual PassPlan plan(const RunContext&) const { return {}; }

    /// Computes the layers' budgets. @throws BudgetError if the policy cannot use the budget
    virtual void begin(const RunContext& context) = 0;

    [[nodiscard]] virtual bool prepares() const { return false; }
    /// Computes data that depend on a layer's weights alone, before a prompt is read. @throws ScoreError
    virtual void prepare(int /*layer*/) {}

    /// Observes a layer before any run selects entries there. The arrays stay valid until the last of these selections.
    virtual void observe(LayerObservations&) {}

    /// Returns the layer whose observation triggers the decision for `layer`: the same or a later one, in ascending
    /// order. Until then, the layer's full cache is kept. Returning a later layer requires `decides_in_order`.
    [[nodiscard]] virtual int decided_at(int layer) const { return layer; }

    /// Whether `gather` collects all data, so that `select` and `draft` may run on any thread without a device.
    [[nodiscard]] virtual bool gathers() const { return false; }
    /// Computes data that runs share or that need a device. Called for one run at a time, before `select` or `draft`.
    virtual void gather(LayerObservations&) {}

    /// Selects the entries that the layer keeps. For B >= N, keeps all and still returns scores. @throws ScoreError
    [[nodiscard]] virtual Selection select(LayerObservations&) = 0;

    [[nodiscard]] virtual Selection draft(LayerObservations&);

    /// Chooses 1 to `n_merges` pairs of neighboring entries to merge. The engine repeats the call for further merges.
    [[nodiscard]] virtual Merges merge(const MergeObservations&, int64_t n_merges);

    /// Whether a layer's decision depends on earlier layers.
    [[nodiscard]] virtual bool decides_in_order() const { return false; }

    /// Repeats the decision of `select` from recorded scores, if the policy uses scores.
    /// @throws ScoreError for invalid scores; std::logic_error if the decision needs more than scores
    [[nodiscard]] virtual Selection select_from_scores(int layer, LayerScores scores);

    /// Whether `Selection::stored` is set for some layer.
    [[nodiscard]] virtual bool stores_parts() const { return false; }

    /// Whether evicted values are added to the values of kept entries.
    [[nodiscard]] virtual bool merges_values() const { return false; }
    /// Adds evicted values to `values` (kept entries, d) of one row.
    virtual void merge_values(LayerObservations&, const Selection&, int /*row*/, std::span<float> /*values*/) {}

    [[nodiscard]] virtual bool acts_while_decoding() const { return false; }
    /// Chooses the entries to drop after a decode step. Step 0 resets the state for a new answer.
    [[nodiscard]] virtual StepEvictions step(const StepObservations&) { return {}; }

    /// Whether `store` stores decoded tokens that leave the range of `whole_tokens`.
    [[nodiscard]] virtual bool stores_while_decoding() const { return false; }
    /// Returns the tokens that a layer stores whole, or nullopt for all tokens. Called after attention at each step.
    [[nodiscard]] virtual std::optional<WholeTokens> whole_tokens(int /*layer*/) const { return WholeTokens{}; }
    [[nodiscard]] virtual StorageSwitching switching() const { return {}; }
    /// Returns the partial storage of tokens that were whole. Every call must return the same layout.
    [[nodiscard]] virtual StoredLayer store(const ReducedTokens&);

    /// Returns how often `merge` is called during decoding. Requires `chunk` in the plan.
    [[nodiscard]] virtual DecodeMerging decode_merging() const { return {}; }

    [[nodiscard]] bool changes_while_decoding() const {
        return acts_while_decoding() || stores_while_decoding() || decode_merging().every > 0;
    }

    /// Whether kept keys keep their positions (prompt) or are rotated again to consecutive positions (cache).
    [[nodiscard]] virtual Positions positions() const { return Positions::prompt; }
};

struct CacheSize {
    ModelShape shape;
    int64_t n_tokens = 0;
    double bytes_per_number = 0;
};

/// Description of a policy, from which the command line, the app's form and the documentation are generated.
struct Definition {
    std::string name;  ///< "ada-snapkv", as on the command line
    std::string title;
    std::string paper;    ///< citation with its identifier
    std::string summary;  ///< one sentence that says which entries are kept
    std::vector<Parameter> parameters;
    std::unique_ptr<Policy> (*create)(const ParameterValues&) = nullptr;
    /// Whether the scores depend on the budget.
    bool scores_follow_budget = false;
    BudgetOf budget_of = BudgetOf::entries;
    /// Returns the share of the full cache's bytes that the parameters set. nullptr if no parameter can set the share.
    std::optional<double> (*own_share)(const ParameterValues&) = nullptr;
    /// Returns the share of bytes that a run needs if `asked` is requested. nullptr if no run needs more than `asked`.
    double (*needed_share)(const ParameterValues&, double asked, const CacheSize&) = nullptr;
    bool needs_file = false;
    std::string remark{};
};

}  // namespace kvscope::policies
