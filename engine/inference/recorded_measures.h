#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/inference/prefill.h"
#include "policies/interface/policy.h"
#include "trace/records.h"

namespace kvscope::engine {

/// Adds a layer's measures of `full/`: window attention (H, N), query similarity (H, w, w) and the heads' JSD (H, H),
/// which covers the tokens before the window, or all tokens if the window is the whole prompt.
void record_full_layer(policies::LayerObservations& observations, int window, trace::PromptRecord& record);

std::span<const float> layer_of(std::span<const float> attention, size_t layer, int64_t n_tokens,
                                const policies::ModelShape& shape);

/// Returns for each query head (H) the share of the window's full attention (H, N) on kept entries.
std::vector<float> attention_kept(std::span<const float> window_attention, const policies::ModelShape& shape,
                                  int64_t n_tokens, const policies::Selection& selection);

/// Returns the logits for the trace; empty if one is NaN or +infinity, which makes the others meaningless.
std::vector<float> recordable(const std::vector<float>& logits);

}  // namespace kvscope::engine
