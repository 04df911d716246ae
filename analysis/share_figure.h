#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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

/// The x axes of the panels.
enum class ShareAxes { layer_and_budget, layer, budget, window };

struct ShareLayout {
    ShareAxes axes = ShareAxes::layer_and_budget;
    size_t most_lines = SIZE_MAX;  ///< per panel; more lines are divided into panels, by budget if possible
};

struct SharePair {
    ShownPair shown;
    RunShares a, b;
};

/// Returns the axes for "layer", "budget" or "window", and both layer and budget for "". @throws FigureError
[[nodiscard]] ShareAxes share_axes_from_name(const std::string& name);

/// Returns the policy's parameter `window` in queries; nullopt if the policy has none.
[[nodiscard]] std::optional<double> window_parameter(const trace::RunAttributes& run);

/// Returns for each run whether another run of its trace differs from it only in the parameter `window`.
[[nodiscard]] std::vector<bool> differ_only_in_window(std::span<const ShownRun> runs);

/// Draws percentages by layer (left) and of the whole model by budget (right), or over the axis of `layout`. The caller
/// adds name, title and caption. @param runs for the axis `window`: runs that differ_only_in_window()
[[nodiscard]] Figure share_figure(std::span<const TracePart> parts, std::span<const RunShares> runs,
                                  const ShareMeasure& measure, const ShareLayout& layout = {});

/// Draws the difference A − B like share_figure(). @throws NothingToShow if the numbers of layers differ
[[nodiscard]] Figure share_difference_figure(std::span<const TracePart, 2> sides, std::span<const SharePair> pairs,
                                             const ShareMeasure& measure, const ShareLayout& layout = {});

/// Returns the differences as shares. A row without a layer refers to the whole model. @throws as
/// share_difference_figure()
[[nodiscard]] Table share_difference_numbers(std::span<const TracePart, 2> sides, std::span<const SharePair> pairs,
                                             const ShareMeasure& measure);

}  // namespace kvscope::analysis
