#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/results/result.h"
#include "analysis/results/scalars.h"
#include "analysis/statistics/paired_difference.h"

/// Values of a scalar by sample. The order of the rows has no effect on means and random draws.
namespace kvscope::analysis {

using Runs = std::vector<const Result*>;

/// Known values of runs that answered one sample.
struct SampleValues {
    std::string context;  ///< name of the cluster
    std::vector<double> values;

    [[nodiscard]] double mean() const;
};

using ValuesBySample = std::map<std::string, SampleValues>;

/// Returns the finite values of the complete runs.
[[nodiscard]] ValuesBySample values_of(const Runs& runs, const Scalar& scalar);

/// Returns the estimate that suits the kind of the scalar; nullopt without values.
[[nodiscard]] std::optional<Estimate> estimate_of(const ValuesBySample& values, const Scalar& scalar);

/// Returns the difference of `values` and `reference` over the samples of both; nullopt if there is no such sample.
[[nodiscard]] std::optional<PairedDifference> difference_of(const ValuesBySample& values,
                                                            const ValuesBySample& reference);

}  // namespace kvscope::analysis
