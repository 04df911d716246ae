// Made-up results of a benchmark task.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace/records/records.h"

namespace kvscope::bench {

/// Returns the rows of `n_samples` samples with the run `full` and `n_runs` runs each, in the order of the samples.
/// Scores are 0 or 1.
[[nodiscard]] std::vector<trace::ResultRow> made_up_results(std::size_t n_samples, std::size_t n_runs,
                                                            std::uint64_t seed);

}  // namespace kvscope::bench
