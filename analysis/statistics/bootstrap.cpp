#include "analysis/statistics/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/statistics/random_index.h"

namespace kvscope::analysis {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t most_draws = 10'000'000;
constexpr int fewest_resamples = 1000;
constexpr std::size_t fewest_clusters_of_mean = 3, fewest_clusters_of_median = 6;

double median_of(std::vector<double> values) {
    const std::size_t half = values.size() / 2;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(half);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) return *middle;
    return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

/// Returns the quantile of sorted values by linear interpolation, as numpy.quantile.
double quantile(const std::vector<double>& sorted, double share) {
    const double place = share * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

using Drawn = std::vector<std::uint32_t>;

/// Returns the clusters of all resamples, one resample after another, each in ascending order, so that their numbers
/// are read in the order of memory. Keeps the last result, because the groups of a table mostly have equal numbers of
/// clusters, and drawing takes longer than adding.
std::shared_ptr<const Drawn> draw_all(std::size_t n_clusters, const Resampling& resampling) {
    using Key = std::tuple<std::size_t, int, std::uint64_t>;
    static std::mutex mutex;
    static std::pair<Key, std::shared_ptr<const Drawn>> last;
    const std::lock_guard lock(mutex);
    const Key key(n_clusters, resampling.n_resamples, resampling.seed);
    if (last.second && last.first == key) return last.second;
    RandomIndex random(resampling.seed);
    Drawn all;
    all.reserve(n_clusters * static_cast<std::size_t>(resampling.n_resamples));
    for (int i = 0; i < resampling.n_resamples; ++i) {
        std::vector<std::uint32_t> n_drawn(n_clusters);
        for (std::size_t k = 0; k < n_clusters; ++k) ++n_drawn[random.below(n_clusters)];
        for (std::uint32_t cluster = 0; cluster < n_clusters; ++cluster)
            all.insert(all.end(), n_drawn[cluster], cluster);
    }
    last = {key, std::make_shared<const Drawn>(std::move(all))};
    return last.second;
}

/// Draws as many clusters as there are, again and again. Returns NaN for fewer than `fewest` clusters.
/// @param statistic computes a number for each of several resamples: statistic(clusters drawn, numbers)
template <class Statistic>
Interval percentile_interval(std::size_t n_clusters, std::size_t fewest, const Resampling& resampling,
                             const Statistic& statistic) {
    if (n_clusters < fewest) return {nan, nan};
    std::vector<double> numbers(static_cast<std::size_t>(resampling.n_resamples));
    if (numbers.size() <= most_draws / n_clusters) {
        statistic(std::span(*draw_all(n_clusters, resampling)), std::span(numbers));
    } else {
        RandomIndex random(resampling.seed);
        Drawn drawn(n_clusters);
        for (double& number : numbers) {
            for (std::uint32_t& cluster : drawn) cluster = static_cast<std::uint32_t>(random.below(n_clusters));
            statistic(std::span<const std::uint32_t>(drawn), std::span(&number, 1));
        }
    }
    std::ranges::sort(numbers);
    return {quantile(numbers, 0.025), quantile(numbers, 0.975)};
}

/// Returns a statistic for percentile_interval() from one that returns the number of one resample.
template <class Statistic>
auto each_resample(const Statistic& statistic) {
    return [statistic](std::span<const std::uint32_t> drawn, std::span<double> numbers) {
        const std::size_t n = drawn.size() / numbers.size();
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = statistic(drawn.subspan(i * n, n));
    };
}

/// Computes the mean of clusters of one sample each. Adds four resamples at a time, because each sum waits for its last
/// addition.
void means_of_resamples(std::span<const double> values, std::span<const std::uint32_t> drawn, std::span<double> means) {
    constexpr std::size_t at_once = 4;
    const std::size_t n = values.size();
    for (std::size_t first = 0; first < means.size(); first += at_once) {
        double sums[at_once] = {};
        if (first + at_once <= means.size()) {
            const std::uint32_t* const one = drawn.data() + first * n;
            for (std::size_t i = 0; i < n; ++i)
                for (std::size_t k = 0; k < at_once; ++k) sums[k] += values[one[k * n + i]];
        } else {
            for (std::size_t k = 0; first + k < means.size(); ++k)
                for (const std::uint32_t cluster : drawn.subspan((first + k) * n, n)) sums[k] += values[cluster];
        }
        for (std::size_t k = 0; k < at_once && first + k < means.size(); ++k)
            means[first + k] = sums[k] / static_cast<double>(n);
    }
}

Interval interval_of_mean(std::span<const double> values, const Clusters& clusters, Resampling resampling) {
    const std::vector<double> sums = clusters.sums(values);
    const auto sizes = clusters.sizes();
    const auto enough = static_cast<int>(most_draws / std::max<std::size_t>(clusters.n_clusters(), 1));
    resampling.n_resamples = std::min(resampling.n_resamples, std::max(enough, fewest_resamples));
    if (clusters.n_clusters() == clusters.n_samples()) {
        return percentile_interval(clusters.n_clusters(), fewest_clusters_of_mean, resampling,
                                   [&](std::span<const std::uint32_t> drawn, std::span<double> means) {
                                       means_of_resamples(sums, drawn, means);
                                   });
    }
    return percentile_interval(clusters.n_clusters(), fewest_clusters_of_mean, resampling,
                               each_resample([&](std::span<const std::uint32_t> drawn) {
                                   double sum = 0;
                                   std::size_t n = 0;
                                   for (const std::uint32_t cluster : drawn) {
                                       sum += sums[cluster];
                                       n += sizes[cluster];
                                   }
                                   return sum / static_cast<double>(n);
                               }));
}

Interval interval_of_median(std::span<const double> values, const Clusters& clusters, const Resampling& resampling) {
    const std::vector<std::vector<double>> by_cluster = clusters.values(values);
    std::vector<double> all;
    return percentile_interval(clusters.n_clusters(), fewest_clusters_of_median, resampling,
                               each_resample([&](std::span<const std::uint32_t> drawn) {
                                   all.clear();
                                   for (const std::uint32_t cluster : drawn)
                                       all.insert(all.end(), by_cluster[cluster].begin(), by_cluster[cluster].end());
                                   return median_of(all);
                               }));
}

}  // namespace

Estimate estimate_mean(std::span<const double> values, const Clusters& clusters, const Resampling& resampling) {
    if (values.empty()) throw std::invalid_argument("estimate_mean: there are no values");
    if (!std::ranges::all_of(values, [](double value) { return std::isfinite(value); }))
        throw std::invalid_argument("estimate_mean: a value is not finite");
    Estimate result;
    result.n = values.size();
    result.n_clusters = clusters.n_clusters();
    for (const double sum : clusters.sums(values)) result.mean += sum;
    result.mean /= static_cast<double>(result.n);
    result.value = result.mean;
    result.median = median_of({values.begin(), values.end()});
    result.interval = interval_of_mean(values, clusters, resampling);
    return result;
}

Estimate estimate_median(std::span<const double> values, const Clusters& clusters, const Resampling& resampling) {
    Estimate result = estimate_mean(values, clusters, {.n_resamples = 1});
    result.value = result.median;
    result.interval = interval_of_median(values, clusters, resampling);
    return result;
}

Estimate estimate_score(std::span<const double> scores, const Clusters& clusters, const Resampling& resampling) {
    Estimate result = estimate_mean(scores, clusters, resampling);
    const double bound = std::pow(0.025, 1 / static_cast<double>(result.n_clusters));
    const bool are_equal = std::ranges::all_of(scores, [&](double score) { return score == scores.front(); });
    if (!are_equal) return result;
    result.interval = scores.front() == 0   ? Interval{0, 1 - bound}
                      : scores.front() == 1 ? Interval{bound, 1}
                                            : Interval{nan, nan};
    return result;
}

}  // namespace kvscope::analysis
