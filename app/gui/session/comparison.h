#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/gui/session/figure_request.h"
#include "app/gui/session/session.h"

namespace kvscope::gui {

/// What a view of runs shows differences of, as a person chose it: none, run A less run B, or each run of one open
/// trace less its like in another.
struct Comparison {
    enum class Kind { automatic, none, runs, traces };
    Kind kind = Kind::automatic;
    std::string trace, less;  ///< names (Session::name_of), where kind is `traces`
    bool operator==(const Comparison&) const = default;
};

/// What `automatic` is.
enum class AutomaticComparison {
    none,
    traces,         ///< the second open trace less the first, where two are open
    traces_or_runs  ///< where one is open: A less B, where both are chosen
};

/// Two runs of which the difference is shown.
struct ComparedRuns {
    RunKey a, b;        ///< a − b
    std::string label;  ///< analysis::pair_label()
    bool same_parameters = true;
};

/// What it comes to among the traces that are open.
struct Compared {
    Comparison::Kind kind = Comparison::Kind::none;  ///< never automatic
    const Document* trace = nullptr;                 ///< where kind is `traces`
    const Document* less = nullptr;
    std::string title;  ///< "two.h5 − one.h5", "A − B"; empty where there is none
    std::vector<ComparedRuns> pairs;

    /// The pair in which a run is the minuend; nullptr where there is none.
    const ComparedRuns* of(const RunKey& run) const;
};

/// @param shown_only leaves out runs of the first trace that are not shown. What cannot be (A is not chosen, the trace
/// is closed) is as if automatic.
Compared resolve(const Session& session, const Comparison& comparison, AutomaticComparison automatic, bool shown_only);

/// Whether A and B are two runs that are there.
bool has_pair(const Session& session);
/// "two.h5 − one.h5"
std::string title_of_both(const Session& session, const Document& trace, const Document& less);

/// The figure's difference; document −1 where no run has its like.
FigureRequest difference_request(const std::string& figure, const Compared& compared);

/// Why there is nothing to show: in one line.
std::string why_no_pairs(const Compared& compared);

void save_comparison(nlohmann::json& state, const Comparison& comparison);
void load_comparison(const nlohmann::json& state, Comparison& comparison);

}  // namespace kvscope::gui
