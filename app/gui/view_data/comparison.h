#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/gui/session/session.h"
#include "app/gui/view_data/figure_request.h"

namespace kvscope::gui {

/// The user's choice: no comparison, run A minus run B, or the runs of one trace minus the matching runs of another.
struct Comparison {
    enum class Kind { automatic, none, runs, traces };
    Kind kind = Kind::automatic;
    std::string trace, less;  ///< names of the two traces (Session::name_of) if kind is `traces`
    [[nodiscard]] bool operator==(const Comparison&) const = default;
};

enum class AutomaticComparison {
    none,
    traces,         ///< if two traces are open: the second minus the first
    traces_or_runs  ///< like `traces`, or A minus B if one trace is open and A and B are chosen
};

struct ComparedRuns {
    RunKey a, b;        ///< minuend and subtrahend
    std::string label;  ///< see analysis::pair_label()
    bool same_parameters = true;
};

struct Compared {
    Comparison::Kind kind = Comparison::Kind::none;  ///< never `automatic`
    const Document* trace = nullptr;                 ///< set if kind is `traces`
    const Document* less = nullptr;
    std::string title;  ///< "two.h5 − one.h5" or "A − B"; empty without a comparison
    std::vector<ComparedRuns> pairs;

    [[nodiscard]] const ComparedRuns* of(const RunKey& run) const;
};

/// Determines which runs are compared. Uses `automatic` if the choice is impossible, e.g. because a trace was closed.
/// @param shown_only whether to omit hidden runs of the first trace
[[nodiscard]] Compared find_compared_runs(const Session& session, const Comparison& comparison,
                                          AutomaticComparison automatic, bool shown_only);

/// Whether A and B are chosen, exist and differ.
[[nodiscard]] bool has_pair_to_compare(const Session& session);
[[nodiscard]] std::string trace_difference_title(const Session& session, const Document& trace, const Document& less);

/// Returns the request for a figure of differences. Its document is −1 if no runs match.
[[nodiscard]] FigureRequest difference_figure_request(const std::string& figure, const Compared& compared);

[[nodiscard]] std::string why_no_pairs(const Compared& compared);

void write_comparison_to_json(nlohmann::json& state, const Comparison& comparison);
void read_comparison_from_json(const nlohmann::json& state, Comparison& comparison);

}  // namespace kvscope::gui
