#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/inference/prefill.h"
#include "policies/interface/policy.h"
#include "trace/records.h"

namespace kvscope::engine {

/// Adds one layer's measures of `full/` to a prompt's record: window attention (H, N), query similarity (H, w, w) and
/// the heads' JSD (H, H) over the tokens before the window, or over all tokens if the window is the whole prompt.
void record_full_layer(policies::LayerObservations& observations, int window, trace::PromptRecord& record);

/// Returns one layer of (L, H, N); empty if `attention` is empty.
std::span<const float> layer_of(std::span<const float> attention, size_t layer, int64_t n_tokens,
                                const policies::ModelShape& shape);

/// Returns for each query head (H) the fraction of the window's full attention (H, N) on the kept entries.
std::vector<float> attention_kept(std::span<const float> window_attention, const policies::ModelShape& shape,
                                  int64_t n_tokens, const policies::Selection& selection);

/// Returns the logits for the trace; empty if one of them is NaN or +infinity, because the others then mean nothing.
std::vector<float> recordable(const std::vector<float>& logits);

}  // namespace kvscope::engine
