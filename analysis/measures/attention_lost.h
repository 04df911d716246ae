#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "analysis/measures/kept_sets.h"
#include "trace/reader.h"

namespace kvscope::analysis {

/// Returns (N): the share of the window's attention that falls on each token in the heads that dropped it, averaged
/// over the query heads of one layer. Heads without any attention are not counted; without counted heads all values are
/// NaN. The values sum to 1 minus the layer's mean of attention_kept(). Query head h reads row h / (H / R).
/// @param window_attention (H, N) of this layer
/// @throws std::invalid_argument if the sizes do not match or R does not divide H
std::vector<double> attention_lost(std::span<const float> window_attention, size_t n_heads, const KeptSets& kept,
                                   size_t layer);

/// Loss of each prompt token in each run, averaged over layers.
struct TokenLosses {
    struct OfRun {
        std::vector<double> attention;     ///< (N) attention_lost(); empty if not recorded
        std::vector<double> kl_attention;  ///< (N) `kl_attention_lost` of the trace, nats; empty if not recorded
        bool is_measured = false;          ///< see is_measured_by_tokens()
    };
    std::vector<OfRun> runs;
    std::vector<double> attention;  ///< (N) attention_lost() of a run that keeps nothing; empty if not recorded
};

/// Returns (N): a run's `kl_attention_lost`, averaged over the layers. The full run gives zeros; a run without the
/// recording gives an empty list.
std::vector<double> token_kl_losses(const trace::Reader& reader, int prompt, int run, std::span<const int> layers);

/// Returns the losses of finished runs, in the order of `runs`. @throws what trace::Reader throws
TokenLosses token_losses(const trace::Reader& reader, int prompt, std::span<const int> runs,
                         std::span<const int> layers);

}  // namespace kvscope::analysis
