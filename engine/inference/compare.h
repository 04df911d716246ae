#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/common/progress.h"
#include "engine/inference/decode.h"

namespace kvscope::engine {

/// The full run's predictions and attention at each step of its own answer of T tokens.
struct FullReference {
    std::vector<int32_t> tokens;   ///< (T)
    at::Tensor log_probabilities;  ///< (T, vocabulary) f32; token t is drawn from row t
    std::vector<int32_t> greedy;   ///< (T) most likely token of each step
    AttentionReference attention;  ///< attention of the T tokens when they are read back
    /// (L) of (G, n, d): keys after the tokens that policies see, up to the answer's last; empty unless requested.
    std::vector<at::Tensor> keys_behind{};
};

/// Difference between a compressed run and the full run when both read the full run's answer of T tokens.
struct Comparison {
    std::vector<float> step_kl;           ///< (T) KL(full || compressed), nats
    std::vector<uint8_t> step_agreement;  ///< (T) 1 if the greedy tokens agree
    std::vector<float> output_error;      ///< (L, H) mean over the T tokens of |o - o_full| / |o_full|
    std::vector<float> attention_lost{};  ///< (L, N) as `kl_attention_lost`; empty if not requested or not known
    std::string error{};                  ///< why the comparison failed; empty if it succeeded
};

/// Returns the comparison of the full run with itself: no divergence, full agreement, no error.
Comparison comparison_of_full(const Transformer& model, const FullReference& reference);

/// Lets the full run read its own answer; its cache must end with the prompt. @throws RunError for NaN in the logits
FullReference reference_of(const Transformer& model, Sequence full, std::span<const float> first_logits,
                           std::span<const int32_t> tokens, Progress& progress);

/// Feeds the full run's answer to all sequences, whose caches must end with the prompt. If a sequence fails, its
/// comparison holds the error.
std::vector<Comparison> compare(const Transformer& model, const FullReference& reference,
                                std::span<const Sequence> sequences, std::span<const std::vector<float>> first_logits,
                                Progress& progress);

}  // namespace kvscope::engine
