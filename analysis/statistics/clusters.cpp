#include "analysis/statistics/clusters.h"

#include <numeric>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

namespace kvscope::analysis {

Clusters::Clusters(std::size_t n) : cluster_of_(n), sizes_(n, 1) {
    std::iota(cluster_of_.begin(), cluster_of_.end(), std::size_t{0});
}

Clusters::Clusters(std::span<const std::string_view> names) {
    std::unordered_map<std::string_view, std::size_t> numbers(names.size());
    for (const std::string_view name : names) {
        const std::size_t cluster = numbers.try_emplace(name, numbers.size()).first->second;
        cluster_of_.push_back(cluster);
        sizes_.resize(numbers.size());
        ++sizes_[cluster];
    }
}

std::vector<double> Clusters::sums(std::span<const double> values) const {
    if (values.size() != n_samples()) throw std::invalid_argument("Clusters::sums: there is not one value per sample");
    std::vector<double> sums(n_clusters());
    for (std::size_t i = 0; i < values.size(); ++i) sums[cluster_of_[i]] += values[i];
    return sums;
}

std::vector<std::vector<double>> Clusters::values(std::span<const double> values) const {
    if (values.size() != n_samples())
        throw std::invalid_argument("Clusters::values: there is not one value per sample");
    std::vector<std::vector<double>> by_cluster(n_clusters());
    for (std::size_t i = 0; i < values.size(); ++i) by_cluster[cluster_of_[i]].push_back(values[i]);
    return by_cluster;
}

}  // namespace kvscope::analysis
