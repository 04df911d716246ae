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

/// What a run is about; constant while one policy acts on one prompt.
struct RunContext {
    ModelShape shape;
    int64_t n_tokens =
        0;               ///< N: prompt tokens that may be compressed (the context alone when the question comes later)
    int64_t budget = 0;  ///< B: entries kept per KV head and layer, window and sinks included; B >= N keeps everything
    /// What was asked for where a budget is a share, before it was rounded to B entries.
    std::optional<double> budget_share;
    uint64_t seed = 0;
    std::string_view model_fingerprint{};  ///< what maps that were trained are tied to; empty where no model is loaded
    std::span<const int32_t> token_ids;    ///< (N)
    int64_t n_vocabulary = 0;              ///< ids that the model knows; 0 where no model is loaded
    /// A text as the model's tokens, special ones not parsed; empty where no model is loaded.
    std::function<std::vector<int32_t>(std::string_view)> tokenize;
    /// A copy in f32 of what a layer's keys or values are made with; empty where no model is loaded.
    std::function<Projection(int layer, Projected)> projection{};
    /// What a layer's keys (before RoPE) or values are like on a calibration text that the model reads once: the sum
    /// over its tokens of y y^T, y (G d) the token's numbers without the projection's bias. (G d, G d), the lower
    /// triangle. Empty where no model is loaded.
    std::function<std::vector<double>(int layer, Projected)> calibration{};
    /// The model's own, where one is loaded.
    std::shared_ptr<ModelMemo> memo{};

    /// What follows from the model's weights alone: kept with the model, made anew where none is loaded.
    /// @param key,make as ModelMemo has them
    template <class T>
    std::shared_ptr<const T> of_weights(const std::string& key, const std::function<T()>& make) const {
        return memo ? memo->get(key, make) : std::make_shared<const T>(make());
    }

    /// The budget of policies that keep every token: the share of the full cache's bytes, at most 1.
    double share_of_bytes() const;
};

/// What the prefill has to collect for a policy. The engine collects the union over all runs, once.
struct Needs {
    int window_queries = 0;       ///< post-RoPE queries of this many last prompt tokens
    bool attention_sums = false;  ///< attention summed over all prompt queries (H2O), exact and streamed
    bool hidden_states = false;   ///< each layer's input (N, hidden)
    /// Keys and values themselves, not what attention makes of them alone. A policy that stores parts or merges values
    /// has them without asking.
    bool entries = false;
    bool keys_before_rope = false;
    bool calibration = false;        ///< RunContext::calibration, which the engine then finds before a prompt is read
    bool projection_inputs = false;  ///< what each layer's projections are applied to (N, hidden)
    /// What the full cache's own answer attends to: the run decides once that answer is known.
    bool answer_attention = false;
    bool own_cache =
        false;  ///< the prompt is read through the policy's own cache: PassPlan says `chunk`, and only then
    /// The gradient of each chunk's loss by the keys in the cache (MergeObservations): another way through the model
    /// and back for each chunk that merges something. Only with `own_cache`.
    bool key_gradients = false;
};

/// How a policy changes the pass. The default changes nothing and shares the one prefill.
struct PassPlan {
    /// Pseudo tokens put behind the prompt for this run alone: they attend to the prompt and to one another, their
    /// queries are observed as `LayerObservations::appended_queries`, their entries are dropped.
    std::vector<int32_t> appended_ids;
    std::vector<int64_t> appended_positions;  ///< same length as `appended_ids`
    /// A layer after whose prefill the prompt is filtered; -1 for none. `select` is called for that layer alone, its
    /// rows all alike: the positions on which the model runs again, renumbered from 0, and every layer's kept set.
    int filter_layer = -1;
    /// The same, but by a token classifier that reads the user's text before the model reads anything: `select` is
    /// called once, with `LayerObservations::token_probabilities` alone.
    std::optional<TokenClassification> classification;
    /// Tokens generated greedily from a draft of the compressed cache before the decision; 0 for none. `draft` says
    /// layer by layer what the draft keeps; `select` then finds the tokens' queries and keys as the appended ones.
    int64_t lookahead = 0;
    /// The prompt is read through the policy's own cache, that many tokens at a time; 0: whole. Where the cache holds
    /// more than B entries, the next chunk is read once for what it attends to, `merge` merges what was there before,
    /// and the chunk is read again and appended. `select` is not called.
    int64_t chunk = 0;
    /// Behind the last chunk the cache is merged back to B entries by the attention of the prompt's last query.
    bool final_merge = true;
};

/// One layer's scores alone, as a trace holds them: R rows (G or H) of N, one of the two vectors or neither.
struct LayerScores {
    Granularity granularity = Granularity::kv_head;
    Scores<float> scores;
    Scores<double> scores_f64;
    std::vector<float> channel_scores{};  ///< (R, d) or empty
};

/// The entries that stay in one layer's cache, and what they were ranked by.
struct Selection {
    Granularity granularity = Granularity::kv_head;
    std::vector<std::vector<uint32_t>> rows;  ///< R rows (G or H) of kept prompt positions, strictly ascending
    /// (R, N) what was ranked, before anything is forced in or out; NaN where a position is no candidate. A policy
    /// fills one of the two, or neither when it ranks nothing.
    Scores<float> scores;
    Scores<double> scores_f64;
    std::vector<float> channel_scores;  ///< (R, d) what key channels were ranked by; empty where none are
    std::vector<float> head_jsd;        ///< (R, R) natural logarithms; empty where the policy computes none
    /// What the cache holds in place of whole keys and values of the kept entries; nullopt: just those.
    std::optional<StoredLayer> stored;
};

/// One layer at one decode step, after its attention: what a policy that acts while decoding may look at.
struct StepObservations {
    int layer = 0;
    int64_t step = 0;      ///< decoded tokens before this one
    int64_t position = 0;  ///< of the token just appended
    struct Row {
        std::span<const uint32_t> positions;  ///< of the row's entries in storage order, the new token's last
        std::span<const float> attention;     ///< (query heads of this row, entries) softmax weights of this step
        int n_query_heads = 0;
    };
    std::vector<Row> rows;
};

/// Which tokens a cache holds whole while it decodes.
struct WholeTokens {
    int64_t first = 0;  ///< so many of the prompt
    int64_t last = 0;   ///< so many of all
};

/// Tokens of a layer that its cache has held whole and is to store in another way, alike in all rows.
struct LeavingTokens {
    int layer = 0;
    std::span<const uint32_t> positions{};  ///< (n) ascending
    EntriesView keys{};                     ///< (G, n, d) after RoPE
    /// (G, n, d); turned back from those, in f32: exact but for the rounding of what the cache holds.
    EntriesView keys_before_rope{};
    EntriesView values{};  ///< (G, n, d)
};

/// Behind every so many tokens that are decoded, what lies before them is merged back to the budget. A question that
/// was read after the compression stays whole and counts in no budget.
struct DecodeMerging {
    int64_t every = 0;  ///< 0: never
    int64_t budget = 0;
    int64_t n_tokens = 0;  ///< N of the run: what stands between these tokens and the first decoded one is a question's
};

/// Per row the storage indices (ascending) of entries to drop after this step; empty: nothing.
using StepEvictions = std::vector<std::vector<uint32_t>>;

/// A KV-cache compression policy: what it observes, its scores, its selection, and for the rarer kinds how it changes
/// the pass, what the cache stores, or what happens at each decode step. One object serves one run; the engine calls
/// plan, begin, prepare, then observe and select for the layers in ascending order, then step. Plain arrays only: the
/// same code runs in the engine and in the viewer's what-if.
class Policy {
 public:
    virtual ~Policy() = default;

    virtual Needs needs() const = 0;

    virtual PassPlan plan(const RunContext&) const { return {}; }

    /// Resolves the budget into shares per layer.
    /// @throws BudgetError (std::invalid_argument) where this policy cannot take the budget.
    virtual void begin(const RunContext& context) = 0;

    /// Whether `prepare` has something to do.
    virtual bool prepares() const { return false; }
    /// Finds what a layer's weights alone decide (RunContext::of_weights). Called behind `begin`, for each layer in
    /// ascending order, before a prompt is read, so that the work can be watched and stopped and counts as no run's
    /// time. It is an offer: where it was not called, what is missing is found when it is needed.
    /// @throws ScoreError for weights that are not finite
    virtual void prepare(int /*layer*/) {}

    /// Looks at a layer, before any decision that is made at it. What the observations refer to stays valid until those
    /// decisions are made.
    virtual void observe(LayerObservations&) {}

    /// The layer behind whose `observe` the layer's `select` is called: itself or a later one, no earlier than that of
    /// the layers before it. A layer that waits keeps its full cache until then, and of its observations keys, values,
    /// window queries and attention sums. A policy that has any wait also says `decides_in_order`.
    virtual int decided_at(int layer) const { return layer; }

    /// Whether what a decision needs is gathered first: then `select`, or `draft`, is called behind `gather` on any
    /// thread, beside other runs' and without help from other threads. It may ask the observations only for what
    /// `gather` has asked for, and for no device; the policy itself is one thread's at a time.
    virtual bool gathers() const { return false; }
    /// Does of a decision what threads share or a device computes: what runs share stands in the observations then, and
    /// the policy keeps what is its own. Called for one run at a time, behind `observe`; before `draft`, too. It is an
    /// offer: where it was not called, the decision itself finds what is missing.
    virtual void gather(LayerObservations&) {}

    /// The layer's decision. Called also for B >= N, where everything has to be kept and scores still filled.
    /// @throws ScoreError (std::runtime_error) when a score is NaN where it must not be.
    virtual Selection select(LayerObservations&) = 0;

    /// What a layer of the draft cache keeps. Called only where `plan` asks for a lookahead.
    virtual Selection draft(LayerObservations&);

    /// Which entries of a layer become one: `n_merges` pairs of neighbours, or fewer, at least one, where no more go at
    /// a time; then it is called again with the attention on what came of it. Called only where `plan` says `chunk`,
    /// for each layer in ascending order, chunk by chunk.
    virtual Merges merge(const MergeObservations&, int64_t n_merges);

    /// Whether a layer's decision follows also from those about the layers before it. Others may be made in any order,
    /// and by several objects.
    virtual bool decides_in_order() const { return false; }

    /// The same decision from scores alone, as `select` makes it once it has them: what a trace's scores say is kept,
    /// under the context given to `begin`. Layers in ascending order. Policies that rank nothing ignore the scores.
    /// @throws ScoreError for a NaN among the candidates or scores of another size; std::logic_error from policies
    /// whose
    ///         decision needs more than scores.
    virtual Selection select_from_scores(int layer, LayerScores scores);

    /// Whether `Selection::stored` says of some layer that its cache holds something else than whole keys and values.
    virtual bool stores_parts() const { return false; }

    /// Whether the values of kept entries take in something of the evicted ones.
    virtual bool merges_values() const { return false; }
    /// Adds it: values (kept entries, d) of a row of the selection, as they were gathered. Keys stay as they are.
    virtual void merge_values(LayerObservations&, const Selection&, int /*row*/, std::span<float> /*values*/) {}

    virtual bool acts_while_decoding() const { return false; }
    /// State of the steps starts anew at step 0: the same prompt may be decoded several times.
    virtual StepEvictions step(const StepObservations&) { return {}; }

    /// Whether, while the run decodes, `whole_tokens` says which tokens stay whole, and `store` what becomes of others.
    virtual bool stores_while_decoding() const { return false; }
    /// Those that stay whole in a layer; looked at behind the layer's attention at each step. nullopt: all.
    virtual std::optional<WholeTokens> whole_tokens(int /*layer*/) const { return WholeTokens{}; }
    /// When all tokens are whole instead.
    virtual Switching switching() const { return {}; }
    /// What the layer stores of tokens that are whole no longer: rows without plain entries, parts with numbers or a
    /// block. Called for the layers in ascending order, with the same tokens; described alike from call to call, they
    /// go behind those before.
    virtual StoredLayer store(const LeavingTokens&);

    /// How entries are merged while the run decodes, by `merge`; it has said `chunk` in its plan.
    virtual DecodeMerging decode_merging() const { return {}; }

    bool changes_while_decoding() const {
        return acts_while_decoding() || stores_while_decoding() || decode_merging().every > 0;
    }

    /// Kept keys keep the positions they were computed at (prompt), or are re-rotated to consecutive ones (cache).
    virtual Positions positions() const { return Positions::prompt; }
};

/// What a prompt's full cache is made of.
struct CacheSize {
    ModelShape shape;
    int64_t n_tokens = 0;
    double bytes_per_number = 0;
};

/// What is known of a policy without running it; the command line, the app's form and the documentation come from it.
struct Definition {
    std::string name;     ///< as on the command line: "ada-snapkv"
    std::string title;    ///< "Ada-SnapKV"
    std::string paper;    ///< citation with its identifier
    std::string summary;  ///< one sentence: what is kept
    std::vector<Parameter> parameters;
    std::unique_ptr<Policy> (*create)(const ParameterValues&) = nullptr;
    /// The scores themselves depend on the budget: those of one run say nothing about another budget.
    bool scores_follow_budget = false;
    /// What its budget limits.
    BudgetOf budget_of = BudgetOf::entries;
    /// The share of the full cache's bytes that the parameters alone decide, which is then the run's only budget;
    /// nullopt: the budget decides. nullptr: the parameters never do.
    std::optional<double> (*own_share)(const ParameterValues&) = nullptr;
    /// Where its budget is one of bytes: the share of them that it comes to at the prompt's end when `asked` is asked
    /// for, since entries stay whole besides, or numbers are stored once. nullptr: no more than that.
    double (*needed_share)(const ParameterValues&, double asked, const CacheSize&) = nullptr;
    /// It cannot run with its defaults: a parameter names a file or folder that only the user can give.
    bool needs_file = false;
    /// What a person should know beforehand, a sentence; empty: nothing.
    std::string remark{};
};

}  // namespace kvscope::policies
