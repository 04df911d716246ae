#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "analysis/figure.h"
#include "analysis/shown_runs.h"

/// Runs of one trace beside the same runs of another, for whatever is A − B of them.
namespace kvscope::analysis {

/// Two runs by their places in the lists that were compared.
struct RunPair {
    size_t a = 0;
    size_t b = 0;
    bool same_parameters = true;
    bool operator==(const RunPair&) const = default;
};

/// Each run of `a` with the run of `b` that is most like it, each of `b` at most once. Both have the same policy and
/// parameters, and the same budget as asked for; else the same number of entries; else the same share of the prompt.
/// Where parameters differ, both have the same policy, and the same budget as asked for or number of entries. `full`
/// goes with `full`. Runs that failed have no like. In the order of `a`.
std::vector<RunPair> pair_runs(std::span<const trace::RunAttributes* const> a,
                               std::span<const trace::RunAttributes* const> b);

/// "snapkv 128" of two that are called alike, else "snapkv 128 − h2o 128".
std::string pair_label(const trace::RunAttributes& a, const trace::RunAttributes& b);

/// A run of one part less a run of another.
struct ShownPair {
    ShownRun a, b;      ///< with labels as in a trace alone
    std::string label;  ///< pair_label()

    SubjectPair subjects() const { return {a.subject(), b.subject()}; }
};

/// The runs of two parts that are compared.
struct ComparedSides {
    std::span<const TracePart, 2> sides;  ///< A and B; may be of one trace
    std::array<std::vector<ShownRun>, 2> runs;
};

/// The runs that the parts' options choose. @throws as shown_runs
ComparedSides compared_sides(std::span<const TracePart, 2> sides);
/// These runs, in this order.
ComparedSides compared_sides(std::span<const TracePart, 2> sides, const std::vector<int>& a, const std::vector<int>& b);

/// Each run of A with its like among B's (pair_runs), in A's order. Where the options name one run on each side, and
/// where the second part stands against each, B's one run goes with all of A's.
/// @throws NothingToShow where no run has its like
std::vector<ShownPair> shown_pairs(const ComparedSides& compared);
std::vector<ShownPair> shown_pairs(std::span<const TracePart, 2> sides);

/// "of A (mine): h2o @ 64; of B (theirs): laq @ 64": the runs that are in none of the pairs; empty where there are
/// none.
std::string unpaired_runs(const ComparedSides& compared, std::span<const ShownPair> pairs);

/// "snapkv @ 64: mine − theirs", "mine: snapkv @ 64 − theirs: h2o @ 64"; of one trace the pair's label. @param a,b what
/// the two runs are called
std::string pair_title(std::span<const TracePart, 2> sides, const std::string& a, const std::string& b);

/// "two.h5 − one.h5", or the one pair's label: behind titles of what is drawn.
std::string difference_title(std::span<const TracePart, 2> sides, std::span<const ShownPair> pairs);

/// Of curves that each stand for a pair, in the colours of the first part's runs.
std::vector<LegendEntry> legend_of(std::span<const TracePart, 2> sides, std::span<const ShownPair> pairs);

/// complete_figure() with the recipes of both sides.
void complete_figure(Figure& figure, std::span<const TracePart, 2> sides, std::span<const ShownPair> pairs);

/// "Coverage (% of tokens)": what a difference's numbers count, for its title and table.
std::string with_unit(const std::string& title, const std::string& unit);

/// Symmetric around zero, with nothing wider than `farthest`.
Axis signed_axis(const std::string& title, const std::string& unit, double farthest);

/// A grey line at zero.
Rule zero_line();

}  // namespace kvscope::analysis
