#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "analysis/measures/kept_sets.h"
#include "trace/reader.h"

namespace kvscope::analysis {

/// (N) of one layer: the share of the window's full attention that falls on each token in the heads that hold nothing
/// of it, the mean over the query heads. `window_attention` is (H, N) of that layer; query head h reads row h / (H /
/// R). A head without any attention is left out of the mean; where no head has any, all are NaN. The numbers add up to
/// 1 less the mean of attention_kept() over the layer's heads.
/// @throws std::invalid_argument when the sizes do not fit or H is no multiple of R.
std::vector<double> attention_lost(std::span<const float> window_attention, size_t n_heads, const KeptSets& kept,
                                   size_t layer);

/// What runs lost of each of a prompt's tokens, as means over layers.
struct TokenLosses {
    struct OfRun {
        std::vector<double> attention;     ///< (N) attention_lost(); empty: not recorded
        std::vector<double> kl_attention;  ///< (N) the trace's `kl_attention_lost`, nats; empty: not recorded
        bool is_measured = false;          ///< is_measured_by_tokens()
    };
    std::vector<OfRun> runs;
    std::vector<double> attention;  ///< (N) the full cache's, as above of a run that keeps nothing; empty: not recorded
};

/// (N) The mean over the layers of a run's `kl_attention_lost`; of the full run zeros, empty where it is not recorded.
std::vector<double> token_kl_losses(const trace::Reader& reader, int prompt, int run, std::span<const int> layers);

/// @param runs finished ones, in the order of the answer. @throws what trace::Reader throws
TokenLosses token_losses(const trace::Reader& reader, int prompt, std::span<const int> runs,
                         std::span<const int> layers);

}  // namespace kvscope::analysis
