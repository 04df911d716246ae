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

/// One run while it decodes.
struct Sequence {
    RunCache* cache = nullptr;
    int64_t position = 0;  ///< of the next token, where the cache does not renumber
    int64_t step = 0;      ///< decoded tokens so far, for policies that act while decoding
    policies::Policy* acting =
        nullptr;             ///< called after each layer's attention; nullptr for policies that do nothing then
    std::string_view run{};  ///< label of the run, for messages
    std::string error{};     ///< why it goes no further; empty while it does
    policies::Switching switching{};  ///< where the policy stores tokens while it decodes

    bool failed() const { return !error.empty(); }
};

/// What a sequence's queries found in its own cache: of the full run reading its own answer, the yardstick for
/// `output_error`.
struct AttentionReference {
    int64_t first_position = 0;             ///< of the first token
    std::vector<at::Tensor> queries;        ///< per layer (T, H d), post-RoPE
    std::vector<at::Tensor> plain_queries;  ///< the same before RoPE, where it was asked for
    std::vector<at::Tensor> outputs;        ///< per layer (T, H d)
};

/// Sum over the fed tokens of |o - o_full| / |o_full|, per layer and query head (L, H).
using OutputErrors = std::vector<double>;

struct FeedOptions {
    /// The tokens are given, not drawn one by one: many of a sequence go through the prefill's attention at a time,
    /// which makes the same of each of them however they are cut into calls. Else every sequence is fed one token,
    /// whose attention is the decode kernel's.
    bool given = false;
    /// One for each of the first sequences: records their queries and attention outputs.
    std::span<AttentionReference> records{};
    bool record_plain = false;  ///< their queries before RoPE, too
    /// Sets the reference's queries to every cache, each as it stands behind that token, and adds the errors: one for
    /// each sequence. Every sequence is given exactly the reference's tokens `reference_first` and following.
    const AttentionReference* compare = nullptr;
    int64_t reference_first = 0;
    std::span<OutputErrors> errors{};
};

/// Feeds tokens to many sequences in one pass: sequence i reads tokens[i], one (more where they are given), behind its
/// cache, which grows by them. Every weight is read once for all of them. A sequence whose policy acts while decoding
/// is fed one token a call. What a sequence gets depends neither on the others nor on the number of threads. Where a
/// policy or a cache throws, that sequence alone gets its `error`: its rows and its cache mean nothing any more, those
/// of the others are the same as without it.
/// @returns the residual stream (sum of the numbers of tokens, hidden), in the order given; `Transformer::logits` takes
///          any of its rows.
at::Tensor feed(const Transformer& model, std::span<Sequence> sequences,
                std::span<const std::span<const int32_t>> tokens, const FeedOptions& options = {});

/// Gives each sequence its own tokens, one or more, as many together as keep the memory for activations that of a
/// prefill's. Nothing of the result depends on how many those are.
/// @returns the residual stream (sequences, hidden) behind each sequence's last token; of no meaning where it failed
/// @throws Cancelled
at::Tensor read_given(const Transformer& model, std::span<Sequence> sequences,
                      std::span<const std::span<const int32_t>> tokens, Progress& progress);

}  // namespace kvscope::engine
