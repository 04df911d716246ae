#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/figure_definition.h"

/// Figures of several traces: curves in one plot where the figure has them so, everything else side by side on one
/// scale, or one trace less another.
namespace kvscope::analysis {

/// A figure of one of several traces.
struct TraceFigure {
    std::optional<Figure> figure;
    std::string nothing;  ///< why there is none
};

/// Each trace's own figure, with limits of colours and of curves' axes that hold for all of them, so that the same
/// colour and the same height mean the same number. A trace that lacks the data says so in `nothing`.
/// @throws as `make`, except NothingToShow
std::vector<TraceFigure> on_one_scale(std::span<const TracePart> parts,
                                      const std::function<Figure(const trace::Reader&, const FigureOptions&)>& make);

/// One figure of them, a trace's panels to the right of those of the trace before, or below them where the width has no
/// room for so many columns (Figure::trace_by_trace); Panel::subject says whose they are.
/// @throws NothingToShow where no trace has a figure
Figure joined_figure(std::vector<TraceFigure> figures, std::span<const TracePart> parts);

/// Whether there can be such a figure (FigureDefinition::check): one of the traces has to do; of a difference both.
/// @throws NothingToShow, FigureError
void check_figure(const FigureDefinition& definition, std::span<const TracePart> parts);
void check_difference(const FigureDefinition& definition, const TracePart& a, const TracePart& b);

/// The definition's figure of one trace or of several. @throws as FigureDefinition::make
Figure make_figure(const FigureDefinition& definition, std::span<const TracePart> parts);
/// Adds to title and caption which prompt a figure is of, where a trace has several.
void name_prompts(Figure& figure, const FigureDefinition& definition, std::span<const TracePart> parts);
/// Its numbers; of several traces with a first column that names the trace.
Table make_numbers(const FigureDefinition& definition, std::span<const TracePart> parts);

/// A − B of what two parts show, map by map and curve by curve: values less values on a diverging scale around zero; of
/// curves on logarithmic axes A ÷ B. Runs are paired first (analysis/run_pairs.h); runs without a like are left out and
/// named in the caption. Runs by query heads and runs by KV heads are compared in a common unit
/// (FigureOptions::common_unit), which title and table name. Parts may be of one trace.
/// @throws NothingToShow that says in what they differ where their shapes do not agree, and as FigureDefinition::make
Figure make_difference(const FigureDefinition& definition, const TracePart& a, const TracePart& b);
/// The runs that such a difference leaves out since they have no like on the other side; empty where there are none.
/// @throws NothingToShow where no run of A has its like in B
std::string unpaired_runs(const FigureDefinition& definition, const TracePart& a, const TracePart& b);
/// "402 tokens in A, 408 in B, unlike from token 24 on" where the prompts of such a difference have unlike token ids;
/// else empty.
std::string unlike_prompts(const FigureDefinition& definition, const TracePart& a, const TracePart& b);
/// Every cell and point of it: what it is of, A, B and what is drawn.
Table difference_numbers(const FigureDefinition& definition, const TracePart& a, const TracePart& b);

}  // namespace kvscope::analysis
