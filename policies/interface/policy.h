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
#include "policies/interface/merging.h"
#include "policies/interface/model_memo.h"
#include "policies/interface/observations.h"
#include "policies/interface/parameters.h"
#include "policies/interface/projection.h"
#include "policies/interface/scores.h"
#include "policies/interface/stored_layer.h"
#include "policies/interface/switching.h"
#include "policies/interface/token_classification.h"

namespace kvscope::policies {

/// The prompt, budget and model of one run. Constant during the run.
struct RunContext {
    ModelShape shape;
    /// N: prompt tokens that may be compressed; only the context if the policy does not see the question.
    int64_t n_tokens = 0;
    /// B: entries kept per KV head and layer, window and sinks included; B >= N keeps everything.
    int64_t budget = 0;
    /// The requested share before rounding to B entries, if the budget is a share.
    std::optional<double> budget_share;
    uint64_t seed = 0;
    std::string_view model_fingerprint{};  ///< identifies the model; empty if no model is loaded
    std::span<const int32_t> token_ids;    ///< shape (N)
    int64_t n_vocabulary = 0;              ///< size of the model's vocabulary; 0 if no model is loaded
    /// Tokenizes a text without parsing special tokens. Empty if no model is loaded.
    std::function<std::vector<int32_t>(std::string_view)> tokenize;
    /// Returns an f32 copy of a layer's key or value projection. Empty if no model is loaded.
    std::function<Projection(int layer, Projected)> projection{};
    /// Returns the sum of y y^T (G d, G d) over the tokens of a calibration text, lower triangle only. y is a token's
    /// keys (before RoPE) or values without the projection's bias. Empty if no model is loaded.
    std::function<std::vector<double>(int layer, Projected)> calibration{};
    std::shared_ptr<ModelMemo> memo{};

    /// Returns a value that depends on the model's weights alone, stored in `memo` if a model is loaded.
    template <class T>
    std::shared_ptr<const T> of_weights(const std::string& key, const std::function<T()>& make) const {
        return memo ? memo->get(key, make) : std::make_shared<const T>(make());
    }

    /// Budget in bytes, as a share of the full cache, at most 1.
    double share_of_bytes() const;
};

/// Data that the prefill has to collect for a policy. The engine collects the union over all runs once.
struct Needs {
    int window_queries = 0;       ///< number of last prompt tokens whose post-RoPE queries are needed
    bool attention_sums = false;  ///< exact attention sums over all prompt queries (H2O)
    bool hidden_states = false;   ///< each layer's input (N, hidden)
    /// Keys and values themselves, not only attention. Policies that store parts or merge values always get them.
    bool entries = false;
    bool keys_before_rope = false;
    bool calibration = false;  ///< RunContext::calibration, which the engine then computes before it reads a prompt
    bool projection_inputs = false;  ///< each layer's input to its projections (N, hidden)
    /// Attention of the full cache's answer. The run then decides after that answer is known.
    bool answer_attention = false;
    bool own_cache = false;  ///< the prompt is read through the policy's own cache; requires PassPlan::chunk
    /// Gradient of each chunk's loss with respect to the cached keys. Costs another forward and backward pass for each
    /// chunk that merges entries. Only with `own_cache`.
    bool key_gradients = false;
};

/// Changes that a policy makes to the pass over the prompt. The default shares the prefill.
struct PassPlan {
    /// Pseudo tokens appended to the prompt for this run. They attend to the prompt and to each other. Their queries
    /// are observed as LayerObservations::appended_queries, and their entries are dropped.
    std::vector<int32_t> appended_ids;
    std::vector<int64_t> appended_positions;  ///< same length as `appended_ids`
    /// Layer after whose prefill the prompt is filtered; -1 for none. `select` is called for that layer only. The model
    /// then runs again on the selected positions, renumbered from 0, and every layer keeps them.
    int filter_layer = -1;
    /// Filters the prompt by a token classifier. `select` is called once, with `token_probabilities` only.
    std::optional<TokenClassification> classification;
    /// Tokens generated greedily from a draft cache before the decision; 0 for none. `draft` selects the draft's
    /// entries. `select` then finds the generated tokens' queries and keys as the appended ones.
    int64_t lookahead = 0;
    /// Tokens per chunk if the prompt is read through the policy's own cache, else 0. If the cache holds more than B
    /// entries, the next chunk is read once to observe its attention, `merge` merges earlier entries, and the chunk is
    /// read again. `select` is not called.
    int64_t chunk = 0;
    /// Whether entries are merged to B after the last chunk, by the attention of the prompt's last query.
    bool final_merge = true;
};

/// The recorded scores of one layer: R rows (G or H) of N. At most one of the two vectors is filled.
struct LayerScores {
    Granularity granularity = Granularity::kv_head;
    Scores<float> scores;
    Scores<double> scores_f64;
    std::vector<float> channel_scores{};  ///< (R, d) or empty
};

/// The entries that stay in one layer's cache, with the scores that ranked them.
struct Selection {
    Granularity granularity = Granularity::kv_head;
    std::vector<std::vector<uint32_t>> rows;  ///< R rows (G or H) of kept prompt positions, strictly ascending
    /// (R, N) scores before any entry is forced in or out; NaN if not a candidate. A policy fills at most one vector.
    Scores<float> scores;
    Scores<double> scores_f64;
    std::vector<float> channel_scores;  ///< (R, d) scores of key channels; empty if the policy ranks no channels
    std::vector<float> head_jsd;        ///< (R, R) Jensen-Shannon divergence in nats, or empty
    /// Storage that replaces whole keys and values of the kept entries; nullopt if they are stored whole.
    std::optional<StoredLayer> stored;
};

/// Observations of one layer at one decode step, after its attention.
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

/// The tokens that a cache holds whole while it decodes.
struct WholeTokens {
    int64_t first = 0;  ///< number of first prompt tokens
    int64_t last = 0;   ///< number of last tokens, decoded ones included
};

/// Tokens of a layer that were stored whole and are now stored in parts, the same in all rows.
struct LeavingTokens {
    int layer = 0;
    std::span<const uint32_t> positions{};  ///< (n) ascending
    EntriesView keys{};                     ///< (G, n, d) after RoPE
    /// (G, n, d) f32, computed from `keys`: exact except for the rounding of the cached keys.
    EntriesView keys_before_rope{};
    EntriesView values{};  ///< shape (G, n, d)
};

/// Merges earlier entries, except a question's, back to the budget after every `every` decoded tokens.
struct DecodeMerging {
    int64_t every = 0;  ///< number of decoded tokens between two merges; 0 for never
    int64_t budget = 0;
    int64_t n_tokens = 0;  ///< N of the run; entries from N up to the first decoded token belong to a question
};

/// Storage indices to drop after this step, ascending, per row. Empty if nothing is dropped.
using StepEvictions = std::vector<std::vector<uint32_t>>;

/// A KV-cache compression policy. One object serves one run. The engine calls plan, begin and prepare, then observe and
/// select for the layers in ascending order, then step. Plain arrays only, so that the app's what-if can use it.
class Policy {
 public:
    virtual ~Policy() = default;

    virtual Needs needs() const = 0;

    virtual PassPlan plan(const RunContext&) const { return {}; }

    /// Derives the budgets of the layers. @throws BudgetError if the policy cannot work with the budget.
    virtual void begin(const RunContext& context) = 0;

    virtual bool prepares() const { return false; }
    /// Computes what a layer's weights alone determine, after `begin` and before a prompt is read. The time counts for
    /// no run. Optional: without this call, the decision computes the missing data. @throws ScoreError
    virtual void prepare(int /*layer*/) {}

    /// Looks at a layer before any decision at this layer. The arrays stay valid until these decisions are made.
    virtual void observe(LayerObservations&) {}

    /// Returns the layer after whose `observe` the given layer is decided: itself or a later one, in ascending order.
    /// Until then, the run holds its full cache, window queries and attention sums. A delay requires
    /// `decides_in_order`.
    virtual int decided_at(int layer) const { return layer; }

    /// Whether `gather` collects everything that a decision needs. If so, `select` and `draft` may run on any thread,
    /// in parallel with other runs, without a device, and read only observations that `gather` has requested.
    virtual bool gathers() const { return false; }
    /// Computes the part of a decision that runs share or that needs all threads or a device. Optional: called for one
    /// run at a time, after `observe` and before `select` or `draft`.
    virtual void gather(LayerObservations&) {}

    /// Decides which entries of the layer are kept. For B >= N, keeps all and still returns scores. @throws ScoreError
    virtual Selection select(LayerObservations&) = 0;

    /// Selects the entries of a layer of the draft cache. Called only if `plan` sets `lookahead`.
    virtual Selection draft(LayerObservations&);

    /// Chooses up to `n_merges` pairs of neighboring entries of a layer to merge, at least one. If it returns fewer, it
    /// is called again with the attention on the merged entries. Called layer by layer for each chunk if `plan` sets
    /// `chunk`.
    virtual Merges merge(const MergeObservations&, int64_t n_merges);

    /// Whether a layer's decision depends on earlier layers. If not, layers may be decided in any order.
    virtual bool decides_in_order() const { return false; }

    /// Makes the decision of `select` from recorded scores, which policies that rank nothing ignore.
    /// @throws ScoreError for invalid scores; std::logic_error if the decision needs more than scores
    virtual Selection select_from_scores(int layer, LayerScores scores);

    /// Whether `Selection::stored` is set for some layer.
    virtual bool stores_parts() const { return false; }

    /// Whether evicted values are added to the values of kept entries.
    virtual bool merges_values() const { return false; }
    /// Adds evicted values to `values` (kept entries, d) of one row of the selection. Keys do not change.
    virtual void merge_values(LayerObservations&, const Selection&, int /*row*/, std::span<float> /*values*/) {}

    virtual bool acts_while_decoding() const { return false; }
    /// Chooses the entries to drop after a decode step. Step 0 resets the state for another answer.
    virtual StepEvictions step(const StepObservations&) { return {}; }

    /// Whether `store` stores decoded tokens that `whole_tokens` no longer covers.
    virtual bool stores_while_decoding() const { return false; }
    /// Returns the tokens that a layer stores whole, or nullopt for all. Called after attention at each step.
    virtual std::optional<WholeTokens> whole_tokens(int /*layer*/) const { return WholeTokens{}; }
    /// Returns the decode steps at which the cache changes between stored parts and whole keys and values.
    virtual Switching switching() const { return {}; }
    /// Returns the storage of tokens that are no longer stored whole, without plain entries. Called for the layers in
    /// ascending order. The layout must be the same in every call, because the results are appended.
    virtual StoredLayer store(const LeavingTokens&);

    /// Returns how often `merge` is called during decoding. Requires `chunk` in the plan.
    virtual DecodeMerging decode_merging() const { return {}; }

    bool changes_while_decoding() const {
        return acts_while_decoding() || stores_while_decoding() || decode_merging().every > 0;
    }

    /// Whether kept keys keep their original positions (prompt) or are re-rotated to consecutive ones (cache).
    virtual Positions positions() const { return Positions::prompt; }
};

struct CacheSize {
    ModelShape shape;
    int64_t n_tokens = 0;
    double bytes_per_number = 0;
};

/// Description of a policy. The command line, the app's form and the documentation are generated from it.
struct Definition {
    std::string name;  ///< "ada-snapkv", as on the command line
    std::string title;
    std::string paper;    ///< citation with its identifier
    std::string summary;  ///< one sentence that says which entries are kept
    std::vector<Parameter> parameters;
    std::unique_ptr<Policy> (*create)(const ParameterValues&) = nullptr;
    /// Whether the scores depend on the budget, so that one run's scores say nothing about another budget.
    bool scores_follow_budget = false;
    BudgetOf budget_of = BudgetOf::entries;
    /// Returns the share of the full cache's bytes that the parameters determine, or nullopt if the budget does.
    /// nullptr if the parameters never determine it.
    std::optional<double> (*own_share)(const ParameterValues&) = nullptr;
    /// For budgets in bytes: returns the share of the full cache's bytes that the run needs if `asked` is requested,
    /// including entries that stay whole and numbers stored once. nullptr if it never exceeds `asked`.
    double (*needed_share)(const ParameterValues&, double asked, const CacheSize&) = nullptr;
    /// Whether the user has to name a file or folder in a parameter.
    bool needs_file = false;
    /// One sentence that the user should read before a run; empty for none.
    std::string remark{};
};

}  // namespace kvscope::policies
