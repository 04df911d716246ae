#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/prefill/prefill.h"
#include "policies/api/policy.h"
#include "trace/records/records.h"

namespace kvscope::engine {

/// Adds a layer's measures of `full/`: window attention (H, N), query similarity (H, w, w) and the JSD between heads
/// (H, H). The JSD covers the tokens before the window, or all tokens if the window is the whole prompt.
void record_layer_measures(policies::LayerObservations& observations, int window, trace::PromptRecord& record);

[[nodiscard]] std::span<const float> slice_layer_attention(std::span<const float> attention, size_t layer,
                                                           int64_t n_tokens, const policies::ModelShape& shape);

/// Returns the share of the window's attention (H, N) that falls on kept entries, for each query head (H).
[[nodiscard]] std::vector<float> attention_kept(std::span<const float> window_attention,
                                                const policies::ModelShape& shape, int64_t n_tokens,
                                                const policies::Selection& selection);

/// Returns the logits for the trace; empty if a logit is NaN or +infinity, because all logits are then meaningless.
[[nodiscard]] std::vector<float> recordable_logits(const std::vector<float>& logits);

}  // namespace kvscope::engine
