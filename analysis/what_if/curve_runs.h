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

/// Runs of a prompt that differ only in the budget or in one parameter: points of one curve.
struct CurveRuns {
    std::string label;      ///< without the budget or parameter on the axis
    std::vector<int> runs;  ///< indices in the prompt
    /// Axis value and run. Runs whose parameter is `auto` have no axis value and are omitted.
    std::vector<std::pair<double, int>> places;
    CurveSource source;  ///< source of the first run
};

struct LeftOut {
    std::string label;
    std::string why;  ///< a clause about the runs; may begin with the label
};

struct CurveChoice {
    std::vector<CurveRuns> curves;  ///< in the order of their first runs
    std::vector<LeftOut> left_out;
};

/// Groups runs into curves. `full` has no curve.
[[nodiscard]] CurveChoice group_runs_into_curves(const std::vector<trace::RunAttributes>& runs,
                                                 const std::vector<int>& shown, int64_t n_tokens,
                                                 const std::string& over);

/// Returns a run whose selection can be repeated along the curve. @throws NothingToShow with the first run's reason
std::shared_ptr<const WhatIf> find_what_if_for_curve(const trace::Reader& reader, int prompt, const CurveRuns& curve,
                                                     const std::string& over);

}  // namespace kvscope::analysis
