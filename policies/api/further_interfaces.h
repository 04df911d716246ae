#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "policies/api/observations.h"
#include "policies/api/policy.h"
#include "policies/api/storage_switching.h"

/// Interfaces that a policy's class implements in addition to Policy. Policy lists the order of the calls, and
/// interfaces_agree() the combinations that exclude each other.
namespace kvscope::policies {

/// One layer's entries in a cache that merges entries, and the attention of the observing queries to these entries. All
/// heads have the same entries. Each entry covers consecutive tokens.
struct MergeObservations {
    int layer = 0;
    ModelShape shape;
    int64_t n_entries = 0;
    /// Entries [whole_begin, whole_end) belong to a question read after the compression. They are never merged.
    int64_t whole_begin = 0, whole_end = 0;
    EntriesView keys;               ///< (G, n, d) before RoPE
    EntriesView values;             ///< (G, n, d) sums over the tokens of an entry
    std::span<const float> masses;  ///< (n) number of tokens in each entry
    int64_t n_queries = 0;          ///< number of observing queries
    /// (H, n) attention n_i exp(e_i) / sum n_j exp(e_j), averaged over the queries. The sum covers all visible entries.
    std::span<const float> attention;
    std::span<const float> outputs;  ///< (H, d) mean attention output over the queries
    int64_t n_chunks = 0;            ///< number of prompt chunks read before the queries' own chunk
    /// Whether the only query is the prompt's last query. The entries of its chunk are then in the cache.
    bool after_prompt = false;
    /// (G, n, d) gradient of the mean next-token loss of the queries' chunk with respect to the keys. Empty if the
    /// layer has merged entries since the gradient was computed, or if the chunk has no loss.
    std::span<const float> key_gradients;

    [[nodiscard]] bool may_merge(int64_t first) const { return first + 1 < whole_begin || first >= whole_end; }
};

/// Pairs of neighboring entries to merge. A merged entry has summed values, summed masses and the later position.
struct Merges {
    std::vector<uint32_t> first;  ///< ascending, without overlap: entries first[i] and first[i] + 1 are merged
    std::vector<float> keys;      ///< (merges, G, d) the merged keys, before RoPE
    float largest_mass = std::numeric_limits<float>::infinity();
    /// Number of merged keys with a weight outside [0, 1], at most merges * G.
    int64_t n_outside = 0;
};

/// Reads all observations in `gather`. `select` and `draft` then use only gathered or shared data: they may run on any
/// thread, and other runs may already have replaced the appended tokens (AppendsTokens).
class Gathers {
 public:
    virtual ~Gathers() = default;
    /// Computes data that runs share or that need a device. Called for one run at a time.
    virtual void gather(LayerObservations&) = 0;
};

/// Decides a layer by the observations of other layers or by earlier decisions. For a delayed decision, keys, values,
/// window queries and attention sums remain available; `observe` must copy other observations.
class DecidesInOrder {
 public:
    virtual ~DecidesInOrder() = default;
    /// Returns the layer after which `layer` is decided: at least `layer`, and never less than for an earlier layer.
    /// Until then, the layer's full cache is kept.
    [[nodiscard]] virtual int decided_at(int layer) const { return layer; }
};

/// Analyzes the model's weights outside the measured time of a run. Keep the results in `RunContext::of_weights`,
/// because another object of the policy may make the selection.
class PreparesWeights {
 public:
    virtual ~PreparesWeights() = default;
    /// Whether this run needs prepare().
    [[nodiscard]] virtual bool prepares() const = 0;
    /// Computes data that depend on a layer's weights alone. @throws ScoreError
    virtual void prepare(int layer) = 0;
};

/// Pseudo tokens that follow the prompt. Their queries are observed, and their entries are dropped.
struct AppendedTokens {
    std::vector<int32_t> ids;
    std::vector<int64_t> positions;  ///< same length as `ids`
};

class AppendsTokens {
 public:
    virtual ~AppendsTokens() = default;
    [[nodiscard]] virtual AppendedTokens appended(const RunContext&) const = 0;
};

/// Selects the tokens after this layer's prefill.
struct FilterLayer {
    int layer = 0;
};

/// Selects the tokens before the prefill, by a token classifier that reads the user's text. `select` receives only
/// `token_probabilities`.
struct TokenClassifierSettings {
    std::string model;         ///< Hugging Face directory of the classifier
    bool first_token = false;  ///< whether a word has the probability of its first token instead of the mean
    bool keep_digits = false;  ///< whether tokens with a digit get probability 1
    std::vector<std::string> force_tokens;  ///< texts whose tokens get probability 1

    [[nodiscard]] bool operator==(const TokenClassifierSettings&) const = default;
};

using PromptFilter = std::variant<FilterLayer, TokenClassifierSettings>;

/// Shortens the prompt. The model reads the selected tokens, renumbered from 0, and every layer keeps all of them.
class FiltersPrompt {
 public:
    virtual ~FiltersPrompt() = default;
    [[nodiscard]] virtual PromptFilter filter(const RunContext&) const = 0;
};

/// Decides by tokens that the model generates greedily from a draft cache. `select` receives these tokens like the
/// appended tokens of AppendsTokens.
class LooksAhead {
 public:
    virtual ~LooksAhead() = default;
    [[nodiscard]] virtual int64_t lookahead() const = 0;  ///< number of generated tokens, at least 1
    /// Selects the entries of the draft cache.
    [[nodiscard]] virtual Selection draft(LayerObservations&) = 0;
};

struct OwnCacheReading {
    int64_t chunk = 0;  ///< number of tokens per chunk
    /// Whether entries are merged down to B after the last chunk, by the attention of the prompt's last query.
    bool final_merge = true;
    /// Requests the gradient of each chunk's loss with respect to the cached keys. Costs another forward and backward
    /// pass.
    bool key_gradients = false;
};

/// How often earlier entries are merged down to the budget during decoding. Entries of a question are never merged.
struct DecodeMerging {
    int64_t every = 0;  ///< number of decoded tokens between two merges; 0 for never
    int64_t budget = 0;
    int64_t n_tokens = 0;  ///< N of the run; entries from N up to the first decoded token belong to a question
};

/// Reads the prompt in chunks through its own cache and merges entries instead of selecting them. While the cache holds
/// more than B entries, each chunk is read twice. The first reading gives the attention by which `merge` chooses
/// earlier entries. The second keeps the chunk's entries.
class ReadsThroughOwnCache : public Policy {
 public:
    [[nodiscard]] virtual OwnCacheReading reading(const RunContext&) const = 0;
    /// Chooses 1 to `n_merges` pairs of neighboring entries to merge. The engine repeats the call for further merges.
    [[nodiscard]] virtual Merges merge(const MergeObservations&, int64_t n_merges) = 0;
    /// Returns how often `merge` is called during decoding.
    [[nodiscard]] virtual DecodeMerging decode_merging() const { return {}; }

    [[nodiscard]] Needs needs() const final { return {}; }
    void observe(LayerObservations&) final {}
    /// @throws std::logic_error
    [[nodiscard]] Selection select(LayerObservations&) final;
};

/// Adds the values of evicted entries to the values of kept entries.
class MergesValues {
 public:
    virtual ~MergesValues() = default;
    /// @param values (kept entries, d) of one row, which the policy changes
    virtual void merge_values(LayerObservations&, const Selection&, int row, std::span<float> values) = 0;
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

/// For each row, the ascending storage indices to drop after a step. Empty if nothing is dropped.
using StepEvictions = std::vector<std::vector<uint32_t>>;

class EvictsWhileDecoding {
 public:
    virtual ~EvictsWhileDecoding() = default;
    /// Chooses the entries to drop after a decode step. Step 0 resets the state for a new answer.
    [[nodiscard]] virtual StepEvictions step(const StepObservations&) = 0;
};

/// Stores other data than whole keys and values, and describes the data in `Selection::stored`.
class StoresParts {
 public:
    virtual ~StoresParts() = default;
    /// Whether some layer of this run has `Selection::stored`.
    [[nodiscard]] virtual bool stores_parts() const = 0;
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

/// Also stores decoded tokens in parts, once they leave the range of `whole_tokens`.
class StoresWhileDecoding : public StoresParts {
 public:
    /// Whether this run stores decoded tokens in parts.
    [[nodiscard]] virtual bool stores_while_decoding() const { return stores_parts(); }
    /// Returns the tokens that a layer stores whole, or nullopt for all tokens.
    [[nodiscard]] virtual std::optional<WholeTokens> whole_tokens(int /*layer*/) const { return WholeTokens{}; }
    [[nodiscard]] virtual StorageSwitching switching() const { return {}; }
    /// Returns the partial storage of tokens that were whole. Every call must return the same layout.
    [[nodiscard]] virtual StoredLayer store(const ReducedTokens&) = 0;
};

}  // namespace kvscope::policies
