#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/figure_definition.h"

namespace kvscope::analysis {

/// A run that a figure shows, of one of its traces.
struct ShownRun {
    const TracePart* part = nullptr;
    int index = 0;
    std::string label;  ///< run_label(), with the trace's name before it where that has one
    LineStyle style;
    size_t trace = 0;  ///< which of the figure's traces it is of

    Subject subject() const { return {.trace = trace, .run = index}; }
    const trace::RunAttributes& attributes() const { return part->reader->run(part->options.prompt, index); }
    size_t n_tokens() const { return static_cast<size_t>(part->reader->prompt(part->options.prompt).visible_tokens()); }
    /// Runs of the same text differ in nothing but the budget.
    std::string method() const;
};

/// The runs that each part's options name (chosen_runs), trace by trace. Traces that have none are left out.
/// @throws as chosen_runs; NothingToShow when no trace has a finished run
std::vector<ShownRun> shown_runs(std::span<const TracePart> parts);

/// run_legend() of the runs; of several traces one after the other, each behind its name.
std::vector<LegendEntry> legend_of(std::span<const ShownRun> runs);

/// "snapkv 64, demo.h5: h2o 64"
std::string labels_of(std::span<const ShownRun> runs);

/// complete_figure() with the recipes of all traces; options of the first count.
void complete_figure(Figure& figure, std::span<const TracePart> parts, std::span<const ShownRun> runs);

/// The recipe of a further trace behind what the figure has already, each line behind the trace's name; and the date of
/// the newer data.
void add_recipe(Figure& figure, const Figure& of_trace, const std::string& name);

}  // namespace kvscope::analysis
