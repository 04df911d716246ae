#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "analysis/measures/kept_sets.h"
#include "trace/reader.h"

namespace kvscope::analysis {

/// Returns the window attention to each token (N) in heads that dropped the token, averaged over all query heads.
/// @param window_attention (H, N) of this layer; the result is NaN if no head has attention
/// @throws std::invalid_argument if the sizes do not match
[[nodiscard]] std::vector<double> attention_lost(std::span<const float> window_attention, size_t n_heads,
                                                 const KeptSets& kept, size_t layer);

/// Attention that runs lost with each prompt token, averaged over layers.
struct TokenLosses {
    struct OfRun {
        std::vector<double> attention;  ///< attention lost with each token (N); empty if not recorded
        std::vector<double>
            kl_attention;          ///< result of kl_weighted_attention_lost(), in nats (N); empty if not recorded
        bool is_measured = false;  ///< result of can_measure_kept_tokens()
    };
    std::vector<OfRun> runs;
    std::vector<double>
        attention;  ///< attention that a run without entries would lose with each token (N); empty if not recorded
};

/// Returns a run's `kl_attention_lost` per token (N), averaged over layers. The result is zero for full, and empty if
/// the trace has no such data.
[[nodiscard]] std::vector<double> kl_weighted_attention_lost(const trace::Reader& reader, int prompt, int run,
                                                             std::span<const int> layers);

/// Returns the losses of finished runs, in the order of `runs`.
[[nodiscard]] TokenLosses attention_lost_by_runs(const trace::Reader& reader, int prompt, std::span<const int> runs,
                                                 std::span<const int> layers);

}  // namespace kvscope::analysis
