#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/common/progress.h"
#include "engine/decode/decode.h"

namespace kvscope::engine {

/// The full run's predictions and attention at each step of its answer of T tokens.
struct FullReference {
    std::vector<int32_t> tokens;   ///< (T)
    at::Tensor log_probabilities;  ///< (T, vocabulary) f32; row t predicts token t
    std::vector<int32_t> greedy;   ///< (T) most likely token of each step
    AttentionReference attention;  ///< queries and attention outputs while the run reads its answer again
    /// Keys of the tokens that policies do not see, up to the answer's last token: for each layer a tensor (G, n, d).
    /// Empty unless requested.
    std::vector<at::Tensor> later_keys{};
};

/// Difference between a run and the full run while both read the full run's answer of T tokens.
struct Comparison {
    std::vector<float> step_kl;           ///< (T) KL(full || run), nats
    std::vector<uint8_t> step_agreement;  ///< (T) 1 if both runs predict the same token
    std::vector<float> output_error;      ///< (L, H) mean over the T tokens of |o - o_full| / |o_full|
    std::vector<float>
        attention_lost{};  ///< (L, N) from attribute_kl_to_dropped_tokens(); empty if not requested or not computable
    std::string error{};   ///< why the comparison failed; empty if it succeeded
};

[[nodiscard]] Comparison comparison_of_full_with_itself(const Transformer& model, const FullReference& reference);

/// Reads the full run's answer into its cache, which must end with the prompt. @throws RunError for NaN in the logits
[[nodiscard]] FullReference compute_full_reference(const Transformer& model, Sequence full,
                                                   std::span<const float> first_logits, std::span<const int32_t> tokens,
                                                   Progress& progress);

/// Reads the full run's answer into all caches, which must end with the prompt. Failed comparisons contain an error.
[[nodiscard]] std::vector<Comparison> compare_with_full_run(const Transformer& model, const FullReference& reference,
                                                            std::span<const Sequence> sequences,
                                                            std::span<const std::vector<float>> first_logits,
                                                            Progress& progress);

}  // namespace kvscope::engine
