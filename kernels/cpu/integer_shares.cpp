#include "kernels/integer_shares.h"

#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace kvscope::kernels {

namespace {

constexpr double same_distance = 1e-9;  ///< quotas and fractions that differ by less count as equal

void add_shares(std::span<const double> weights, const std::vector<size_t>& takers, int64_t total,
                std::vector<int64_t>& shares) {
    double sum = 0.0;
    for (size_t i : takers) sum += weights[i];
    std::vector<double> fractions(takers.size());
    int64_t missing = total;
    for (size_t t = 0; t < takers.size(); ++t) {
        const double weight = sum > 0.0 ? weights[takers[t]] / sum : 1.0 / static_cast<double>(takers.size());
        double quota = weight * static_cast<double>(total);
        if (std::abs(quota - std::round(quota)) < same_distance) quota = std::round(quota);
        fractions[t] = quota - std::floor(quota);
        const int64_t floored = static_cast<int64_t>(quota);
        shares[takers[t]] += floored;
        missing -= floored;
    }
    // Each missing slot goes to the share with the largest remaining fraction. Ties go to the lowest index.
    for (; missing > 0; --missing) {
        double largest = -1.0;
        for (double fraction : fractions) largest = std::max(largest, fraction);
        size_t t = 0;
        while (fractions[t] < largest - same_distance) ++t;
        ++shares[takers[t]];
        fractions[t] = -1.0;
    }
}

}  // namespace

std::vector<int64_t> integer_shares(std::span<const double> weights, int64_t total, std::span<const int64_t> caps) {
    if (total < 0) throw std::invalid_argument("integer shares: the total is negative");
    double sum = 0.0;
    for (double weight : weights) {
        if (!(weight >= 0.0) || !std::isfinite(weight)) {
            throw std::invalid_argument("integer shares: a weight is negative or not finite");
        }
        sum += weight;
    }
    if (total > 0 && !(sum > 0.0 && std::isfinite(sum))) {
        throw std::invalid_argument("integer shares: the sum of the weights must be finite and above 0");
    }
    if (!caps.empty() && caps.size() != weights.size()) {
        throw std::invalid_argument("integer shares: the number of caps differs from the number of weights");
    }
    if (!caps.empty() && std::accumulate(caps.begin(), caps.end(), int64_t{0}) < total) {
        throw std::invalid_argument("integer shares: the sum of the caps is below the total");
    }
    std::vector<int64_t> shares(weights.size(), 0);
    if (total == 0) return shares;
    std::vector<size_t> takers(weights.size());
    std::iota(takers.begin(), takers.end(), size_t{0});
    int64_t left = total;
    while (left > 0) {
        add_shares(weights, takers, left, shares);
        left = 0;
        if (caps.empty()) break;
        std::vector<size_t> with_room;
        for (size_t i : takers) {
            if (shares[i] > caps[i]) {
                left += shares[i] - caps[i];
                shares[i] = caps[i];
            } else if (shares[i] < caps[i]) {
                with_room.push_back(i);
            }
        }
        takers = std::move(with_room);
    }
    return shares;
}

}  // namespace kvscope::kernels
