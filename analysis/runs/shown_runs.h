#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/drawing/figure_definition.h"

namespace kvscope::analysis {

/// A run in a figure and the trace that contains it.
struct ShownRun {
    const TracePart* part = nullptr;
    int index = 0;
    std::string label;  ///< run_label(); if there are several traces, preceded by the trace's name
    LineStyle style;
    size_t trace = 0;  ///< index of the trace

    [[nodiscard]] Subject subject() const { return {.trace = trace, .run = index}; }
    [[nodiscard]] const trace::RunAttributes& attributes() const {
        return part->reader->run(part->options.prompt, index);
    }
    [[nodiscard]] size_t n_tokens() const {
        return static_cast<size_t>(part->reader->prompt(part->options.prompt).visible_tokens());
    }
    /// Returns a key that is equal for runs that differ only in their budgets.
    [[nodiscard]] std::string method() const;
    [[nodiscard]] int series() const;  ///< series_of_run()
};

/// Returns chosen_runs() of each part, in the order of the parts. Omits a part without finished runs or prompts.
/// @throws FigureError if a part has no run with a chosen name; the first part's NothingToShow if every part is omitted
[[nodiscard]] std::vector<ShownRun> shown_runs(std::span<const TracePart> parts);

/// Consecutive runs of one trace.
struct RunsOfPart {
    const TracePart& part;
    std::vector<int> indices;  ///< indices of the runs in their trace
};

/// Returns the runs, divided where the trace changes.
[[nodiscard]] std::vector<RunsOfPart> runs_per_part(std::span<const ShownRun> runs);

/// Returns run_legend() of each trace. If there are several traces, the labels contain their names.
[[nodiscard]] std::vector<LegendEntry> legend_of_runs(std::span<const ShownRun> runs);

[[nodiscard]] std::string join_run_labels(std::span<const ShownRun> runs);

/// Calls complete_figure() with the options of the first trace and combines the recipes of all traces.
void complete_figure(Figure& figure, std::span<const TracePart> parts, std::span<const ShownRun> runs);

/// Appends the recipe of another trace, with `name` before each key. The figure gets the newer of both dates.
void add_recipe(Figure& figure, const Figure& of_trace, const std::string& name);

}  // namespace kvscope::analysis
