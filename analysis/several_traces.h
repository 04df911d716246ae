#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/figure_definition.h"

/// Figures of several traces: curves in one plot if the figure supports it, else panels side by side on one scale, or
/// the difference of two traces.
namespace kvscope::analysis {

/// The figure of one trace.
struct TraceFigure {
    std::optional<Figure> figure;
    std::string nothing;  ///< reason if there is no figure
};

/// Makes each trace's figure with shared limits of colors and axes, so that equal colors and heights mean equal
/// numbers.
/// @throws as `make`, except NothingToShow, whose message is put into `nothing`
std::vector<TraceFigure> on_one_scale(std::span<const TracePart> parts,
                                      const std::function<Figure(const trace::Reader&, const FigureOptions&)>& make);

/// Joins figures: the panels of each trace are to the right of the preceding trace's panels, or below them if the width
/// is too small (Figure::trace_by_trace). @throws NothingToShow if no trace has a figure
Figure joined_figure(std::vector<TraceFigure> figures, std::span<const TracePart> parts);

/// Checks whether the figure can be made (FigureDefinition::check). At least one of the traces must have the data; for
/// a difference, both. @throws NothingToShow, FigureError
void check_figure(const FigureDefinition& definition, std::span<const TracePart> parts);
void check_difference(const FigureDefinition& definition, const TracePart& a, const TracePart& b);

/// Makes the figure of one or several traces. @throws as FigureDefinition::make
Figure make_figure(const FigureDefinition& definition, std::span<const TracePart> parts);
/// Adds the prompt to title and caption if a trace has several prompts.
void name_prompts(Figure& figure, const FigureDefinition& definition, std::span<const TracePart> parts);
/// Returns the numbers of the figure; the first column names the trace if there are several.
Table make_numbers(const FigureDefinition& definition, std::span<const TracePart> parts);

/// Returns A − B of two parts, map by map and curve by curve, on a scale that is symmetric around zero. Curves on
/// logarithmic axes show A ÷ B. Runs are paired first (analysis/run_pairs.h); the caption names runs without a pair.
/// Runs by query head and by KV head are compared in a common unit (FigureOptions::common_unit).
/// @throws NothingToShow if the shapes differ, and what FigureDefinition::make throws
Figure make_difference(const FigureDefinition& definition, const TracePart& a, const TracePart& b);
/// Returns the runs without a pair in this difference; empty if there are none.
/// @throws NothingToShow if there are no pairs
std::string unpaired_runs(const FigureDefinition& definition, const TracePart& a, const TracePart& b);
/// Returns how the prompts' token ids differ: "402 tokens in A, 408 in B, different from token 24 on"; empty if they are
/// equal.
std::string unlike_prompts(const FigureDefinition& definition, const TracePart& a, const TracePart& b);
/// Returns one row per cell or point: the items, A, B and the difference.
Table difference_numbers(const FigureDefinition& definition, const TracePart& a, const TracePart& b);

}  // namespace kvscope::analysis
