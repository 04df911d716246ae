#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/figure.h"
#include "analysis/run_pairs.h"
#include "analysis/shown_runs.h"

namespace kvscope::analysis {

/// A share from 0 to 1 for each layer and for the whole model.
struct RunShares {
    ShownRun shown;
    std::vector<double> layers;  ///< (L)
    double model = 0;
};

struct ShareMeasure {
    std::string title;  ///< of the y axis: "Coverage"
    std::string whole;  ///< the denominator: "tokens"

    std::string percent() const { return "% of " + whole; }    ///< unit of the figure
    std::string share() const { return "share of " + whole; }  ///< unit of the table
};

/// The shares of two compared runs.
struct SharePair {
    ShownPair shown;
    RunShares a, b;
};

/// Left panel: percentages by layer, one curve per run. Right panel: percentages of the whole model by budget; lines
/// join runs that differ only in budget. The caller adds name, title and caption.
Figure share_figure(std::span<const TracePart> parts, std::span<const RunShares> runs, const ShareMeasure& measure);

/// Returns A − B as in share_figure(), one curve per pair. The caller completes the title.
/// @throws NothingToShow if the layers differ
Figure share_difference(std::span<const TracePart, 2> sides, std::span<const SharePair> pairs,
                        const ShareMeasure& measure);

/// Returns the numbers as shares from 0 to 1, per layer; rows without a layer are for the whole model. The caller
/// completes the title. @throws as share_difference()
Table share_difference_numbers(std::span<const TracePart, 2> sides, std::span<const SharePair> pairs,
                               const ShareMeasure& measure);

}  // namespace kvscope::analysis
