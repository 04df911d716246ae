#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/cache/run_cache.h"
#include "engine/common/progress.h"
#include "engine/model/transformer.h"
#include "policies/api/definition.h"

namespace kvscope::engine {

/// Observes a layer's attention for a decoded token without a change of the cache.
using StepObserver = std::function<void(const policies::StepObservations&)>;
/// Interface or observer that is called after a layer's attention for a decoded token.
using AfterAttention = std::variant<std::monostate, StepObserver, policies::EvictsWhileDecoding*,
                                    policies::StoresWhileDecoding*, policies::ReadsThroughOwnCache*>;

/// Returns the policy's decoding interface if the policy changes the cache while decoding; call this after
/// Policy::begin.
[[nodiscard]] AfterAttention after_attention_of(const policies::CreatedPolicy& policy);
/// Returns the settings for storing tokens of a policy that stores tokens while decoding; the default for others.
[[nodiscard]] policies::StorageSwitching switching_of(const AfterAttention& acting);

struct Sequence {
    RunCache* cache = nullptr;
    int64_t position = 0;                    ///< position of the next token; not used if the cache renumbers
    int64_t step = 0;                        ///< number of decoded tokens; used by policies that act while decoding
    AfterAttention acting{};                 ///< called after each layer's attention
    std::string_view run{};                  ///< label of the run, for messages
    std::string error{};                     ///< why the sequence stopped; empty while it continues
    policies::StorageSwitching switching{};  ///< set if the policy stores tokens while it decodes

    [[nodiscard]] bool failed() const { return !error.empty(); }
    [[nodiscard]] bool acts() const { return acting.index() != 0; }
    /// Returns an interface that is called after attention, or nullptr.
    template <class Interface>
    [[nodiscard]] Interface* acting_as() const {
        const auto* found = std::get_if<Interface*>(&acting);
        return found ? *found : nullptr;
    }
};

/// Queries and attention outputs of a sequence. The full run's record is the reference for `output_error`.
struct AttentionReference {
    int64_t first_position = 0;             ///< position of the first token
    std::vector<at::Tensor> queries;        ///< per layer (T, H d), after RoPE
    std::vector<at::Tensor> plain_queries;  ///< per layer (T, H d), before RoPE; only if requested
    std::vector<at::Tensor> outputs;        ///< per layer (T, H d)
};

/// Sums of |o - o_full| / |o_full| over the tokens, per layer and query head (L, H).
using OutputErrors = std::vector<double>;

struct FeedOptions {
    /// Whether the tokens are known beforehand and can be read together. Otherwise each sequence reads one token.
    bool given = false;
    /// Receives the queries and attention outputs of the first records.size() sequences.
    std::span<AttentionReference> records{};
    bool record_plain = false;  ///< also record the queries before RoPE
    /// Reference for the output errors, or nullptr for no errors. All sequences must read the reference's tokens, from
    /// index `reference_first` on.
    const AttentionReference* compare = nullptr;
    int64_t reference_first = 0;
    std::span<OutputErrors> errors{};  ///< one element for each sequence
};

/// Feeds tokens to many sequences in one pass and appends them to the caches. A sequence's result depends neither on
/// other sequences nor on the number of threads. If a sequence fails, its rows and cache become invalid.
/// @param tokens one per sequence; several are valid if `given` is set and `acting` of the sequence is empty
/// @returns the residual stream (tokens of all sequences, hidden)
at::Tensor feed_tokens(const Transformer& model, std::span<Sequence> sequences,
                       std::span<const std::span<const int32_t>> tokens, const FeedOptions& options = {});

/// Feeds each sequence its own known tokens. Activations need no more memory than in a prefill.
/// @returns the residual stream of each sequence's last token (sequences, hidden); undefined for failed sequences
at::Tensor read_given_tokens(const Transformer& model, std::span<Sequence> sequences,
                             std::span<const std::span<const int32_t>> tokens, Progress& progress);

}  // namespace kvscope::engine
