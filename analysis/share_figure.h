#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/figure.h"
#include "analysis/run_pairs.h"
#include "analysis/shown_runs.h"

namespace kvscope::analysis {

/// A share, 0 to 1, in each of the model's layers and over the whole model.
struct RunShares {
    ShownRun shown;
    std::vector<double> layers;  ///< (L)
    double model = 0;
};

struct ShareMeasure {
    std::string title;  ///< of the vertical axis: "Coverage"
    std::string whole;  ///< "tokens", of which it is a share

    std::string percent() const { return "% of " + whole; }    ///< the figure's unit
    std::string share() const { return "share of " + whole; }  ///< the table's unit
};

/// What two runs that are compared have.
struct SharePair {
    ShownPair shown;
    RunShares a, b;
};

/// In percent by layer (left, a curve a run, the layers that the options choose) and for the whole model over the
/// budget (right; runs that differ in nothing else are joined). Lacks a name, a title and a caption.
Figure share_figure(std::span<const TracePart> parts, std::span<const RunShares> runs, const ShareMeasure& measure);

/// The same of A − B, a curve a pair, on axes around zero; its title lacks what the share is of. @throws NothingToShow
/// where the two have not the same layers
Figure share_difference(std::span<const TracePart, 2> sides, std::span<const SharePair> pairs,
                        const ShareMeasure& measure);

/// Its numbers, as shares from 0 to 1: each layer's, and without a layer the whole model's. The same
/// holds for its title.
/// @throws as share_difference
Table share_difference_numbers(std::span<const TracePart, 2> sides, std::span<const SharePair> pairs,
                               const ShareMeasure& measure);

}  // namespace kvscope::analysis
