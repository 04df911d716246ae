#pragma once

#include <span>
#include <vector>

#include "analysis/statistics/bootstrap.h"

namespace kvscope::analysis {

/// Mean of a − b over samples that both runs answered.
struct PairedDifference {
    Estimate estimate;
    /// Probability of a mean difference of at least this size if a and b were interchangeable. Exact test with all
    /// exchanges for up to 20 clusters whose differences are not 0, otherwise random exchanges (Edgington, 1969): at
    /// least 1 / (1 + n_resamples).
    double p = 1;
};

/// Compares two runs on the same samples, in the same order. The test exchanges a and b in whole clusters.
/// @throws std::invalid_argument as estimate_mean(), or if the numbers of values differ
[[nodiscard]] PairedDifference paired_difference(std::span<const double> a, std::span<const double> b,
                                                 const Clusters& clusters, const Resampling& resampling = {});

/// Returns the smallest p that a comparison of n clusters can have.
[[nodiscard]] double smallest_p(std::size_t n_clusters, const Resampling& resampling = {});

/// Adjusts the p-values of several comparisons (Holm, 1979), so that p <= 0.05 holds for any of them by chance with a
/// probability of at most 5 %. NaN values are no comparisons and stay NaN.
[[nodiscard]] std::vector<double> holm(std::span<const double> p);

}  // namespace kvscope::analysis
