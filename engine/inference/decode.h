#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cache/run_cache.h"
#include "engine/common/progress.h"
#include "engine/model/transformer.h"
#include "policies/interface/policy.h"

namespace kvscope::engine {

/// A run that is decoding.
struct Sequence {
    RunCache* cache = nullptr;
    int64_t position = 0;                ///< position of the next token; not used if the cache renumbers
    int64_t step = 0;                    ///< number of decoded tokens, for policies that act while decoding
    policies::Policy* acting = nullptr;  ///< called after each layer's attention; may be nullptr
    std::string_view run{};              ///< label of the run, for messages
    std::string error{};                 ///< why the sequence stopped; empty while it continues
    policies::Switching switching{};     ///< set if the policy stores tokens while it decodes

    bool failed() const { return !error.empty(); }
};

/// Queries and attention outputs of a sequence; those of the full run are the reference of `output_error`.
struct AttentionReference {
    int64_t first_position = 0;             ///< position of the first token
    std::vector<at::Tensor> queries;        ///< per layer (T, H d), after RoPE
    std::vector<at::Tensor> plain_queries;  ///< per layer (T, H d), before RoPE; only if requested
    std::vector<at::Tensor> outputs;        ///< per layer (T, H d)
};

/// Sum over the fed tokens of |o - o_full| / |o_full|, per layer and query head (L, H).
using OutputErrors = std::vector<double>;

struct FeedOptions {
    /// Whether the tokens are known beforehand. Known tokens go through the prefill's attention many at a time;
    /// otherwise each sequence reads one token through the decode attention.
    bool given = false;
    /// Receives the queries and attention outputs of the first sequences, one element for each.
    std::span<AttentionReference> records{};
    bool record_plain = false;  ///< also record the queries before RoPE
    /// If set, applies the reference's queries to every cache after each token, and adds the output errors. Every
    /// sequence must be given the reference's tokens from `reference_first` on.
    const AttentionReference* compare = nullptr;
    int64_t reference_first = 0;
    std::span<OutputErrors> errors{};  ///< one element for each sequence
};

/// Feeds tokens to many sequences in one pass and appends them to the caches. Every weight is read once. A sequence's
/// result depends neither on the others nor on the number of threads. If a sequence fails, its `error` is set and its
/// rows and cache become invalid.
/// @param tokens of each sequence: one, or several if they are given and its policy does not act while decoding
/// @returns the residual stream (tokens of all sequences, hidden)
at::Tensor feed(const Transformer& model, std::span<Sequence> sequences,
                std::span<const std::span<const int32_t>> tokens, const FeedOptions& options = {});

/// Feeds each sequence its own known tokens, with no more memory for activations than a prefill.
/// @returns the residual stream (sequences, hidden) of each sequence's last token; undefined for a sequence that failed
at::Tensor read_given(const Transformer& model, std::span<Sequence> sequences,
                      std::span<const std::span<const int32_t>> tokens, Progress& progress);

}  // namespace kvscope::engine
