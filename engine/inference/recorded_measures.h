#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/inference/prefill.h"
#include "policies/interface/policy.h"
#include "trace/records.h"

namespace kvscope::engine {

/// Adds one layer's measures of `full/` to a prompt's record: window attention (H, N), query similarity (H, w, w) and
/// the heads' JSD (H, H) over the prefix before the window (over everything where the window is the whole prompt).
void record_full_layer(policies::LayerObservations& observations, int window, trace::PromptRecord& record);

/// A layer's part of (L, H, N); empty where that is.
std::span<const float> layer_of(std::span<const float> attention, size_t layer, int64_t n_tokens,
                                const policies::ModelShape& shape);

/// Share of the window's full attention (H, N) that falls on the kept entries, for each query head (H).
std::vector<float> attention_kept(std::span<const float> window_attention, const policies::ModelShape& shape,
                                  int64_t n_tokens, const policies::Selection& selection);

/// The logits as a trace holds them: none where one of them is NaN or +infinity, which leaves the others without sense.
std::vector<float> recordable(const std::vector<float>& logits);

}  // namespace kvscope::engine
