#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "analysis/drawing/figure.h"
#include "analysis/runs/shown_runs.h"

namespace kvscope::analysis {

struct RunPair {
    size_t a = 0;
    size_t b = 0;
    bool same_parameters = true;
    [[nodiscard]] bool operator==(const RunPair&) const = default;
};

/// Pairs each finished run of `a` with the most similar unused run of `b`. Policy and budget must be equal; runs with
/// equal parameters are preferred.
[[nodiscard]] std::vector<RunPair> pair_runs(std::span<const trace::RunAttributes* const> a,
                                             std::span<const trace::RunAttributes* const> b);

/// Returns "snapkv 128" if both labels are equal, else "snapkv 128 − h2o 128".
[[nodiscard]] std::string pair_label(const trace::RunAttributes& a, const trace::RunAttributes& b);

/// A run of A and the run of B that is subtracted from it.
struct ShownPair {
    ShownRun a, b;      ///< labels as in a figure of a single trace
    std::string label;  ///< result of pair_label()

    [[nodiscard]] SubjectPair subjects() const { return {a.subject(), b.subject()}; }
};

struct ComparedSides {
    std::span<const TracePart, 2> sides;  ///< A and B; may refer to one trace
    std::array<std::vector<ShownRun>, 2> runs;
};

/// Returns the runs that the options of both parts choose.
[[nodiscard]] ComparedSides compared_sides(std::span<const TracePart, 2> sides);
/// Returns the given runs in the given order.
[[nodiscard]] ComparedSides compared_sides(std::span<const TracePart, 2> sides, const std::vector<int>& a,
                                           const std::vector<int>& b);

/// Pairs the runs of A and B (pair_runs), in A's order. If A and B name one run each, these two runs form a pair.
/// @throws NothingToShow if there are no pairs
[[nodiscard]] std::vector<ShownPair> shown_pairs(const ComparedSides& compared);
[[nodiscard]] std::vector<ShownPair> shown_pairs(std::span<const TracePart, 2> sides);

/// Returns the runs without a pair: "of A (mine): h2o @ 64; of B (theirs): laq @ 64"; empty if there are none.
[[nodiscard]] std::string unpaired_runs(const ComparedSides& compared, std::span<const ShownPair> pairs);

/// Returns a title such as "snapkv @ 64: mine − theirs". @param a,b labels of the two runs
[[nodiscard]] std::string pair_title(std::span<const TracePart, 2> sides, const std::string& a, const std::string& b);

/// Returns "two.h5 − one.h5", or the label of a single pair, to append to a title.
[[nodiscard]] std::string difference_title(std::span<const TracePart, 2> sides, std::span<const ShownPair> pairs);

/// Returns a legend with one entry per pair, in the colors of A's runs.
[[nodiscard]] std::vector<LegendEntry> legend_of_pairs(std::span<const TracePart, 2> sides,
                                                       std::span<const ShownPair> pairs);

void complete_figure(Figure& figure, std::span<const TracePart, 2> sides, std::span<const ShownPair> pairs);

/// Returns title and unit of a difference: "Coverage (% of tokens)".
[[nodiscard]] std::string with_unit(const std::string& title, const std::string& unit);

[[nodiscard]] Axis difference_axis(const std::string& title, const std::string& unit, double farthest);

[[nodiscard]] Rule zero_line();

}  // namespace kvscope::analysis
