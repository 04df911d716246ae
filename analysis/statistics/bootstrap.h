#pragma once

#include <cstdint>
#include <span>

#include "analysis/statistics/clusters.h"

namespace kvscope::analysis {

/// How often statistics draw samples again. Equal values give equal numbers on every machine.
struct Resampling {
    /// Intervals of means over more than 1,000 clusters draw 10 million clusters in all, and at least 1,000 samples.
    /// The random error of an end is then below 0.1 standard errors of the mean.
    int n_resamples = 10000;
    std::uint64_t seed = 1;
};

/// An interval that contains the true value with 95 % confidence.
struct Interval {
    double low = 0, high = 0;
};

/// Mean and median of a number that is measured on n samples.
struct Estimate {
    double mean = 0, median = 0;
    double value = 0;   ///< the estimated one: the mean, or the median after estimate_median()
    Interval interval;  ///< of `value`; NaN if there are too few clusters
    std::size_t n = 0, n_clusters = 0;
};

/// Estimates a mean. The interval is the percentile bootstrap (Efron, 1979) over clusters, NaN for fewer than 3
/// clusters.
/// @throws std::invalid_argument if there are no values, a value is not finite, or there is not one value per sample
[[nodiscard]] Estimate estimate_mean(std::span<const double> values, const Clusters& clusters,
                                     const Resampling& resampling = {});

/// Estimates the median of measurements such as times, whose outliers would dominate a mean. The interval is the
/// percentile bootstrap over clusters. It is NaN for fewer than 6 clusters, because even the interval from the least to
/// the greatest of n values contains the median only with a probability of 1 - 2^(1-n), below 95 % for n < 6.
/// @throws std::invalid_argument as estimate_mean()
[[nodiscard]] Estimate estimate_median(std::span<const double> values, const Clusters& clusters,
                                       const Resampling& resampling = {});

/// Estimates the mean of scores from 0 to 1. If all scores are equal, all resamples are equal, too. Then the interval
/// is the exact one of Clopper and Pearson (1934) for as many trials as there are clusters if the scores are 0 or 1,
/// and NaN for other scores.
/// @throws std::invalid_argument as estimate_mean()
[[nodiscard]] Estimate estimate_score(std::span<const double> scores, const Clusters& clusters,
                                      const Resampling& resampling = {});

}  // namespace kvscope::analysis
