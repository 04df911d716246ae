#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/what_if/what_if.h"
#include "analysis/what_if/what_if_curve.h"
#include "trace/reader.h"

namespace kvscope::analysis {

/// Runs of a prompt that differ in nothing but the budget, or in one parameter: points of one curve.
struct CurveRuns {
    std::string label;      ///< without what the curve is over
    std::vector<int> runs;  ///< by their places in the prompt
    /// Where on the axis each of them stands; not those that have no place there, whose parameter is `auto`.
    std::vector<std::pair<double, int>> places;
    CurveSource source;  ///< the first run's
};

/// A run, or runs, of which there is no curve.
struct LeftOut {
    std::string label;
    std::string why;  ///< a sentence about it, which may begin with its label
};

struct CurveChoice {
    std::vector<CurveRuns> curves;  ///< in the order of their first runs
    std::vector<LeftOut> left_out;
};

/// @param runs  the prompt's
/// @param shown places among them
/// `full` has no curve and is not named.
CurveChoice curves_of_runs(const std::vector<trace::RunAttributes>& runs, const std::vector<int>& shown,
                           int64_t n_tokens, const std::string& over);

/// The first of the curve's runs whose selection can be made again along the curve from the trace alone.
/// @throws NothingToShow with the first run's reason, and what the reader throws
std::shared_ptr<const WhatIf> selection_along(const trace::Reader& reader, int prompt, const CurveRuns& curve,
                                              const std::string& over);

}  // namespace kvscope::analysis
