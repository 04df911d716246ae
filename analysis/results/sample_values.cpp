#include "analysis/results/sample_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>

#include "analysis/statistics/clusters.h"

namespace kvscope::analysis {
namespace {

/// Values of one sample.
struct Sample {
    std::string context;  ///< name of the cluster
    double a = 0;
    double b = 0;  ///< value of the reference run
};

/// Orders samples and clusters by their values, so that sums and random draws do not depend on the order of the rows.
/// Returns the clusters of the ordered samples.
Clusters put_in_order(std::vector<Sample>& samples) {
    using Values = std::vector<std::pair<double, double>>;
    std::map<std::string, Values> contexts;
    for (const Sample& sample : samples) contexts[sample.context].emplace_back(sample.a, sample.b);
    std::vector<Values> clusters;
    for (auto& [name, values] : contexts) {
        std::ranges::sort(values);
        clusters.push_back(std::move(values));
    }
    std::ranges::sort(clusters);
    samples.clear();
    std::vector<std::string> names;
    for (size_t i = 0; i < clusters.size(); ++i)
        for (const auto& [a, b] : clusters[i]) {
            names.push_back(fmt::format("{}", i));
            samples.push_back({names.back(), a, b});
        }
    return Clusters(std::vector<std::string_view>(names.begin(), names.end()));
}

}  // namespace

double SampleValues::mean() const {
    std::vector<double> sorted = values;
    std::ranges::sort(sorted);
    return std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
}

ValuesBySample values_of(const Runs& runs, const Scalar& scalar) {
    ValuesBySample samples;
    for (const Result* run : runs) {
        const double value = run->is_complete() ? scalar.value(*run) : NAN;
        if (!std::isfinite(value)) continue;
        SampleValues& sample = samples[run->sample];
        sample.context = run->row.context_hash.empty() ? run->sample : run->row.context_hash.string();
        sample.values.push_back(value);
    }
    return samples;
}

std::optional<Estimate> estimate_of(const ValuesBySample& values, const Scalar& scalar) {
    if (values.empty()) return std::nullopt;
    std::vector<Sample> samples;
    for (const auto& [name, sample] : values) samples.push_back({sample.context, sample.mean()});
    const Clusters clusters = put_in_order(samples);
    std::vector<double> numbers;
    for (const Sample& sample : samples) numbers.push_back(sample.a);
    if (scalar.is_cost()) return estimate_median(numbers, clusters);
    return scalar.is_score() ? estimate_score(numbers, clusters) : estimate_mean(numbers, clusters);
}

std::optional<PairedDifference> difference_of(const ValuesBySample& values, const ValuesBySample& reference) {
    std::vector<Sample> samples;
    for (const auto& [name, sample] : values)
        if (const auto other = reference.find(name); other != reference.end())
            samples.push_back({sample.context, sample.mean(), other->second.mean()});
    if (samples.empty()) return std::nullopt;
    const Clusters clusters = put_in_order(samples);
    std::vector<double> a, b;
    for (const Sample& sample : samples) {
        a.push_back(sample.a);
        b.push_back(sample.b);
    }
    return paired_difference(a, b, clusters);
}

}  // namespace kvscope::analysis
