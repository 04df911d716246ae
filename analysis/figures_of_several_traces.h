#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/drawing/figure_definition.h"

/// Figures of several traces: curves in one plot, panels side by side on one scale, or the difference of two traces.
namespace kvscope::analysis {

/// The figure of one trace, or the reason why there is none.
struct TraceFigure {
    std::optional<Figure> figure;
    std::string nothing;  ///< reason why there is no figure; otherwise empty
};

/// Makes one figure per trace. All figures have equal axis and color limits.
/// @throws as `make`, except NothingToShow
[[nodiscard]] std::vector<TraceFigure> make_figures_on_one_scale(
    std::span<const TracePart> parts, const std::function<Figure(const trace::Reader&, const FigureOptions&)>& make);

/// Joins figures side by side, or one below another if the width is too small. @throws NothingToShow without figures
[[nodiscard]] Figure joined_figure(std::vector<TraceFigure> figures, std::span<const TracePart> parts);

/// @throws NothingToShow if all traces, or one side of a difference, lack the data; FigureError for invalid options
void check_figure(const FigureDefinition& definition, std::span<const TracePart> parts);
void check_difference(const FigureDefinition& definition, const TracePart& a, const TracePart& b);

[[nodiscard]] Figure make_figure(const FigureDefinition& definition, std::span<const TracePart> parts);
/// Adds the prompt to title and caption if a trace has several prompts.
void add_prompt_to_title(Figure& figure, const FigureDefinition& definition, std::span<const TracePart> parts);
/// Returns the numbers of the figure; the first column names the trace if there are several.
[[nodiscard]] Table make_numbers(const FigureDefinition& definition, std::span<const TracePart> parts);

/// Draws the difference A − B of two traces, or A ÷ B on logarithmic axes. Runs are paired first
/// (analysis/runs/run_pairs.h).
/// @throws NothingToShow if the figures of A and B do not match
[[nodiscard]] Figure make_difference(const FigureDefinition& definition, const TracePart& a, const TracePart& b);
/// Names the runs without a pair, or returns an empty text. @throws NothingToShow if there are no pairs
std::string unpaired_runs(const FigureDefinition& definition, const TracePart& a, const TracePart& b);
/// Describes how prompts differ: "402 tokens in A, 408 in B, different from token 24 on". Empty for equal prompts.
[[nodiscard]] std::string prompt_difference(const FigureDefinition& definition, const TracePart& a, const TracePart& b);
/// Returns one row per cell or point: the items, A, B and the difference.
[[nodiscard]] Table difference_numbers(const FigureDefinition& definition, const TracePart& a, const TracePart& b);

}  // namespace kvscope::analysis
