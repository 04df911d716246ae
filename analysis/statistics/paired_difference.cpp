#include "analysis/statistics/paired_difference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <stdexcept>

#include "analysis/statistics/random_index.h"

namespace kvscope::analysis {
namespace {

constexpr std::size_t most_clusters_of_exact_test = 20;  // 1,048,576 exchanges

/// Returns the sums of the numbers with all 2^n combinations of signs.
std::vector<double> totals_of_exchanges(std::span<const double> numbers) {
    std::vector<double> totals = {0};
    totals.reserve(std::size_t{1} << numbers.size());
    for (const double number : numbers) {
        const std::size_t n = totals.size();
        for (std::size_t i = 0; i < n; ++i) {
            totals.push_back(totals[i] - number);
            totals[i] += number;
        }
    }
    return totals;
}

/// Returns the p-value of the sum of all `sums` if each of them could have either sign.
double p_of_exchanges(std::vector<double> sums, const Resampling& resampling) {
    std::erase(sums, 0.0);  // Its exchange changes no sum.
    double observed = 0, size = 0;
    for (const double sum : sums) {
        observed += sum;
        size += std::abs(sum);
    }
    // Sums of the same numbers in another order differ by rounding.
    const double threshold = std::abs(observed) - 1e-12 * size;
    int64_t n_as_large = 0;
    if (sums.size() <= most_clusters_of_exact_test) {
        // Each total adds two halves, so that its rounding error is far below the threshold's tolerance.
        const auto half = std::span(sums).first(sums.size() / 2);
        const std::vector<double> firsts = totals_of_exchanges(half);
        const std::vector<double> seconds = totals_of_exchanges(std::span(sums).subspan(half.size()));
        for (const double first : firsts)
            for (const double second : seconds) n_as_large += std::abs(first + second) >= threshold ? 1 : 0;
        return static_cast<double>(n_as_large) / static_cast<double>(firsts.size() * seconds.size());
    }
    RandomIndex random(resampling.seed);
    for (int i = 0; i < resampling.n_resamples; ++i) {
        double total = 0;
        for (const double sum : sums) total += random.coin() ? -sum : sum;
        n_as_large += std::abs(total) >= threshold ? 1 : 0;
    }
    return static_cast<double>(n_as_large + 1) / (resampling.n_resamples + 1);
}

}  // namespace

PairedDifference paired_difference(std::span<const double> a, std::span<const double> b, const Clusters& clusters,
                                   const Resampling& resampling) {
    if (a.size() != b.size()) throw std::invalid_argument("paired_difference: the numbers of values differ");
    std::vector<double> differences(a.size());
    std::ranges::transform(a, b, differences.begin(), std::minus());
    const Estimate estimate = estimate_mean(differences, clusters, resampling);
    return {estimate, p_of_exchanges(clusters.sums(differences), resampling)};
}

double smallest_p(std::size_t n_clusters, const Resampling& resampling) {
    // Exchanging all clusters gives a difference of the same size.
    if (n_clusters <= most_clusters_of_exact_test) return std::ldexp(1.0, 1 - static_cast<int>(n_clusters));
    return 1.0 / (resampling.n_resamples + 1);
}

std::vector<double> holm(std::span<const double> p) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < p.size(); ++i)
        if (!std::isnan(p[i])) order.push_back(i);
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return p[i]; });
    std::vector<double> adjusted(p.begin(), p.end());
    double greatest = 0;
    for (std::size_t rank = 0; rank < order.size(); ++rank) {
        greatest = std::max(greatest, p[order[rank]] * static_cast<double>(order.size() - rank));
        adjusted[order[rank]] = std::min(greatest, 1.0);
    }
    return adjusted;
}

}  // namespace kvscope::analysis
