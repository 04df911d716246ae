#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace kvscope::analysis {

/// Division of n samples into clusters, such as all questions about one context. Samples of a cluster depend on each
/// other, so statistics draw or exchange whole clusters (Cameron, Gelbach and Miller, 2008).
class Clusters {
 public:
    /// Each of n samples is a cluster.
    explicit Clusters(std::size_t n);
    /// Samples with equal names are a cluster. Clusters are numbered in the order of their first sample.
    explicit Clusters(std::span<const std::string_view> names);

    [[nodiscard]] std::size_t n_samples() const { return cluster_of_.size(); }
    [[nodiscard]] std::size_t n_clusters() const { return sizes_.size(); }
    /// Number of samples in each cluster.
    [[nodiscard]] std::span<const std::size_t> sizes() const { return sizes_; }

    /// Returns the sum of each cluster's values. @throws std::invalid_argument if there is not one value per sample
    [[nodiscard]] std::vector<double> sums(std::span<const double> values) const;
    /// Returns the values of each cluster. @throws as sums()
    [[nodiscard]] std::vector<std::vector<double>> values(std::span<const double> values) const;

 private:
    std::vector<std::size_t> cluster_of_, sizes_;
};

}  // namespace kvscope::analysis
