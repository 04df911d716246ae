#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/drawing/figure_definition.h"
#include "analysis/runs/row_settings.h"
#include "analysis/runs/run_name.h"
#include "analysis/statistics/bootstrap.h"
#include "analysis/statistics/clusters.h"
#include "analysis/tables/table.h"
#include "trace/records/records.h"

namespace kvscope::analysis {

/// A policy setting at one budget, with all samples of a task; or with those of one model, or those whose question is
/// seen, or hidden.
struct TaskGroup {
    std::string policy;
    std::string setting;                     ///< "snapkv:window=8"
    std::string budget;                      ///< as RowSettings::budget
    bool of_bytes = false;                   ///< as RowSettings::of_bytes
    std::optional<bool> question_seen = {};  ///< as RowSettings::question_seen
    std::string model = {};                  ///< as RowSettings::model
    std::vector<const trace::ResultRow*> answered = {};
    std::vector<size_t> samples = {};  ///< SettingsOfRows::Place::sample of `answered`
    int n_failed = 0;
    struct Failure {
        std::string reason;
        std::vector<std::string> samples;
    };
    std::vector<Failure> failures = {};  ///< one per reason

    [[nodiscard]] bool is_full() const { return policy == full_policy; }
    /// Returns `name`, a name of the setting, with the model if the table has several, and ", question seen" or
    /// ", question hidden" if it has both.
    [[nodiscard]] std::string distinct(const std::string& name) const;
    [[nodiscard]] std::string label() const { return distinct(setting); }
    /// Returns estimate_score() of the answered samples. Questions about one context are one cluster.
    /// @throws std::invalid_argument if no sample is answered
    [[nodiscard]] Estimate mean_score(const Resampling& resampling = {}) const;
    /// Returns the contexts of the answered samples as clusters.
    [[nodiscard]] Clusters contexts() const;
    /// Returns the mean share of the full cache over the answered samples, 0 to 1.
    [[nodiscard]] double budget_share() const;
};

/// Returns TaskGroup::mean_score() of each group, computed on several threads; nullopt without answered samples.
[[nodiscard]] std::vector<std::optional<Estimate>> mean_scores(std::span<const TaskGroup> groups);

/// Names of a group in tables and figures, with new labels of settings (FigureOptions::setting_labels).
struct GroupNames {
    std::string whole;  ///< for tables
    std::string shown;  ///< for figures; a parameter that is a path is shortened to its stem, "headkv:heads-r"
};

[[nodiscard]] GroupNames names_of(const TaskGroup& group, const FigureOptions& options);

/// Whether `chosen` contains the group.
[[nodiscard]] bool is_chosen(ChosenRuns& chosen, const TaskGroup& group, const FigureOptions& options);

/// Formats a mean and its interval, "0.50 [0.30, 0.70]". Scores of one context have no interval.
[[nodiscard]] std::string score_text(const Estimate& score, std::string (*number_text)(double));

/// Groups results by setting, budget, model and, if both occur, question seen or hidden. Groups refer to `rows`.
/// @param settings settings_of_rows(rows)
/// @throws FigureError if there are no rows
[[nodiscard]] std::vector<TaskGroup> group_results_by_setting_and_budget(std::span<const trace::ResultRow> rows,
                                                                         const SettingsOfRows& settings);
[[nodiscard]] std::vector<TaskGroup> group_results_by_setting_and_budget(std::span<const trace::ResultRow> rows);

/// Returns the distinct budgets without `full`: entries ascending, then bytes, then shares; "all" if there are none.
[[nodiscard]] std::vector<std::string> distinct_budgets(std::span<const TaskGroup> groups);

/// Whether a task scores its answers. The task `timing` does not.
[[nodiscard]] bool has_scores(std::span<const trace::ResultRow> rows);

/// Whether an answer can be partly right, as with LongBench's metrics, whose names end in "_score".
[[nodiscard]] bool is_graded(const trace::ResultRow& row);

/// Returns one row per TaskGroup: number of samples, mean score with its interval, number of failures.
[[nodiscard]] Table task_scores(std::span<const TaskGroup> groups);

/// Returns scores in per cent, "93.3 [86.7, 98.3]", with one row per TaskGroup::label() and one column per budget.
[[nodiscard]] Table task_scores_by_budget(std::span<const TaskGroup> groups);

/// Describes failed runs: "cam @ 64 failed in 2 of 60 samples (niah-500-0.1-0, niah-500-0.1-2): …".
[[nodiscard]] std::vector<std::string> describe_failed_runs(std::span<const TaskGroup> groups);

enum class Advice { shown, hidden };

/// Says whether the results are usable to compare policies, or what prevents the comparison. Requirements: at least 60
/// samples; `full` is right in at least 90 % of them, `random` at its smallest budget in at most 10 %; for graded
/// scores, `full` is distinguishably better than `random`. Warns if most wrong answers of `full` were cut off.
/// Judges each model, and questions seen and hidden, separately. @param groups of a whole table
/// @param advice whether the text says what to do about an obstacle
[[nodiscard]] std::string assess_task_validity(std::span<const TaskGroup> groups, Advice advice = Advice::shown);
/// Returns the first obstacle without its remedy, "6 samples: only large differences can be found"; empty if there is
/// none, or if the table has several models, or questions both seen and hidden.
[[nodiscard]] std::string first_obstacle_to_comparison(std::span<const TaskGroup> groups);

/// Returns a remark about prompts that fit into the budget and lost no tokens; empty if there are no such prompts.
[[nodiscard]] std::string describe_uncompressed_samples(std::span<const TaskGroup> groups);

/// Settings by policy and window.
using WindowsOfPolicies = std::map<std::string, std::map<int64_t, std::set<std::string>>>;
/// Returns the windows of the policies: "window of 8 queries: aperturekv, snapkv:window=8; of 32 queries: h2o, snapkv";
/// empty if none has a window. Settings are named only if a policy has several windows.
[[nodiscard]] std::string windows_in_words(const WindowsOfPolicies& windows_of_policies);
[[nodiscard]] std::string describe_policy_windows(std::span<const trace::ResultRow> rows);

}  // namespace kvscope::analysis
