#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/drawing/figure.h"
#include "analysis/runs/run_pairs.h"
#include "analysis/runs/shown_runs.h"

namespace kvscope::analysis {

/// A share from 0 to 1 for each layer and for the whole model.
struct RunShares {
    ShownRun shown;
    std::vector<double> layers;  ///< share of each layer
    double model = 0;
};

struct ShareMeasure {
    std::string title;  ///< title of the y axis: "Coverage"
    std::string whole;  ///< name of the quantity that counts as 100 %: "tokens"

    [[nodiscard]] std::string percent() const { return "% of " + whole; }    ///< unit of the figure
    [[nodiscard]] std::string share() const { return "share of " + whole; }  ///< unit of the table
};

struct SharePair {
    ShownPair shown;
    RunShares a, b;
};

/// Draws percentages by layer (left) and of the whole model by budget (right). The caller adds name, title and caption.
[[nodiscard]] Figure share_figure(std::span<const TracePart> parts, std::span<const RunShares> runs,
                                  const ShareMeasure& measure);

/// Draws the difference A − B like share_figure(). @throws NothingToShow if the numbers of layers differ
[[nodiscard]] Figure share_difference_figure(std::span<const TracePart, 2> sides, std::span<const SharePair> pairs,
                                             const ShareMeasure& measure);

/// Returns the differences as shares. A row without a layer refers to the whole model. @throws as
/// share_difference_figure()
[[nodiscard]] Table share_difference_numbers(std::span<const TracePart, 2> sides, std::span<const SharePair> pairs,
                                             const ShareMeasure& measure);

}  // namespace kvscope::analysis
