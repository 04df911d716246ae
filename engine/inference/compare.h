#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/common/progress.h"
#include "engine/inference/decode.h"

namespace kvscope::engine {

/// What the full cache says at each step of its own answer of T tokens.
struct FullReference {
    std::vector<int32_t> tokens;   ///< (T)
    at::Tensor log_probabilities;  ///< (T, vocabulary) f32: row t is what token t is drawn from
    std::vector<int32_t> greedy;   ///< (T) the likeliest token of each
    AttentionReference attention;  ///< of the T tokens read back
    /// (L) of (G, n, d): the full cache's keys behind what policies see, the answer's last; empty where not asked for.
    std::vector<at::Tensor> keys_behind{};
};

/// How far a compressed cache is from the full one when both read the full run's tokens.
struct Comparison {
    std::vector<float> step_kl;           ///< (T) KL(full || compressed), nats
    std::vector<uint8_t> step_agreement;  ///< (T) 1 where the greedy tokens are the same
    std::vector<float> output_error;      ///< (L, H) mean over the T tokens of |o - o_full| / |o_full|
    std::vector<float> attention_lost{};  ///< (L, N) `kl_attention_lost`; empty where not asked for, or not known
    std::string error{};                  ///< why there is none of the three; empty where they are there
};

/// The full run beside itself: no divergence, full agreement, no error.
Comparison comparison_of_full(const Transformer& model, const FullReference& reference);

/// Reads the full run's own answer into its cache, which stands at the end of the prompt.
/// @throws RunError where the logits hold NaN; Cancelled
FullReference reference_of(const Transformer& model, Sequence full, std::span<const float> first_logits,
                           std::span<const int32_t> tokens, Progress& progress);

/// Feeds the reference's tokens to all sequences, whose caches stand at the end of the prompt, in a few large passes
/// (one token at a time to those whose policy acts while decoding). A sequence that fails has its error in its
/// comparison.
/// @throws Cancelled
std::vector<Comparison> compare(const Transformer& model, const FullReference& reference,
                                std::span<const Sequence> sequences, std::span<const std::vector<float>> first_logits,
                                Progress& progress);

}  // namespace kvscope::engine
