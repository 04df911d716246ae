#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/drawing/figure_definition.h"

namespace kvscope::analysis {

/// Help of the option "runs" of figures whose runs are settings of results.
inline constexpr const char* names_of_results_help =
    "policies, settings, or labels of a table (\"snapkv @ 64, question seen\"); default: all";

/// A run, or a group of runs, of a table of results.
struct DescribedRun {
    std::string policy;
    std::vector<std::string> settings;  ///< names of its policy setting: RowSettings::setting and new labels
    std::string budget;                 ///< RowSettings::budget
    std::string trace = {};             ///< empty if there is only one
    std::vector<std::pair<std::string, std::string>> others = {};  ///< further settings: "question", "question seen"
};

/// A name of runs as labels in tables and figures have it, such as "snapkv:window=8 @ 64, question seen": a policy or
/// a policy setting, and in any order the budget and labels of further settings.
class RunName {
 public:
    explicit RunName(std::string name);

    /// Returns nullopt if the run does not have this name. Otherwise returns the settings that the name gives:
    /// "budget", "trace", names in DescribedRun::others, and "policy" if the name gives a policy but not the run's
    /// setting.
    [[nodiscard]] std::optional<std::set<std::string>> match(const DescribedRun& run) const;
    /// Whether DescribedRun::others has an effect.
    [[nodiscard]] bool has_others() const;

 private:
    std::vector<std::string> texts_;  ///< the name, also with the policy setting in the form of labels
};

/// Returns the labels of runs, then their policies that are not labels themselves, for policies::did_you_mean().
[[nodiscard]] std::vector<std::string> labels_and_policies(std::vector<std::string> labels);

/// The runs of results that FigureOptions::runs names.
class ChosenRuns {
 public:
    explicit ChosenRuns(const FigureOptions& options);

    /// Whether no run is named, or one of the names is the run's. @param label the run's label without the budget
    [[nodiscard]] bool contains(const std::string& label, const std::string& budget,
                                const std::function<bool(const RunName&)>& has_name);
    /// @throws FigureError for a name that no run had so far, with similar and all known labels
    void require_known() const;

 private:
    std::vector<std::string> texts_;
    std::vector<RunName> names_;
    std::vector<bool> are_known_;         // by name
    std::set<std::string> labels_;        // of all runs so far, without budgets
    std::set<std::string> with_budgets_;  // "snapkv @ 64"
};

}  // namespace kvscope::analysis
