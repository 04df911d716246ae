#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/statistics/bootstrap.h"
#include "analysis/tables/table.h"
#include "trace/records/records.h"

namespace kvscope::analysis {

/// A policy setting at one budget, with all samples of a task.
struct TaskGroup {
    std::string policy;
    std::string setting;  ///< "snapkv:window=8"
    std::string budget;   ///< as RowSettings::budget
    std::vector<const trace::ResultRow*> answered;
    int n_failed = 0;
    struct Failure {
        std::string reason;
        std::vector<std::string> samples;
    };
    std::vector<Failure> failures = {};  ///< one per reason

    bool of_bytes = false;  ///< The budget is a number of bytes.

    [[nodiscard]] bool is_full() const { return policy == full_policy; }
    /// Returns estimate_score() of the answered samples. Questions about one context are one cluster.
    /// @throws std::invalid_argument if no sample is answered
    [[nodiscard]] Estimate mean_score() const;
    /// Returns the mean share of the full cache over the answered samples, 0 to 1.
    [[nodiscard]] double budget_share() const;
};

/// Formats a mean and its interval, "0.50 [0.30, 0.70]". Scores of one context have no interval.
[[nodiscard]] std::string score_text(const Estimate& score, std::string (*number_text)(double));

/// Groups results by setting and budget. Groups refer to `rows`. @throws FigureError if there are no rows
[[nodiscard]] std::vector<TaskGroup> group_results_by_setting_and_budget(std::span<const trace::ResultRow> rows);

/// Returns the distinct budgets without `full`: entries ascending, then bytes, then shares; "all" if there are none.
[[nodiscard]] std::vector<std::string> distinct_budgets(std::span<const TaskGroup> groups);

/// Whether a task scores its answers. The task `timing` does not.
[[nodiscard]] bool has_scores(std::span<const trace::ResultRow> rows);

/// Whether an answer can be partly right, as with LongBench's metrics, whose names end in "_score".
[[nodiscard]] bool is_graded(const trace::ResultRow& row);

/// Returns one row per policy setting and budget: number of samples, mean score with its interval, number of failures.
/// @throws FigureError if there are no rows
[[nodiscard]] Table task_scores(std::span<const trace::ResultRow> rows);

/// Returns scores in per cent, "93.3 [86.7, 98.3]", with one row per policy setting and one column per budget.
[[nodiscard]] Table task_scores_by_budget(std::span<const trace::ResultRow> rows);

/// Describes failed runs: "cam @ 64 failed in 2 of 60 samples (niah-500-0.1-0, niah-500-0.1-2): …".
[[nodiscard]] std::vector<std::string> describe_failed_runs(std::span<const trace::ResultRow> rows);

/// Says in one sentence whether the results are usable. Requirements: at least 60 samples; `full` is right in at least
/// 90 % of them, `random` at its smallest budget in at most 10 %. Warns if most wrong answers of `full` were cut off.
[[nodiscard]] std::string assess_task_validity(std::span<const trace::ResultRow> rows);

/// Returns a remark about prompts that fit into the budget and lost no tokens; empty if there are no such prompts.
[[nodiscard]] std::string describe_uncompressed_samples(std::span<const trace::ResultRow> rows);

/// Returns the windows of the policies: "windows: 8 of aperturekv; 32 of h2o, snapkv"; empty if none has a window.
[[nodiscard]] std::string windows_in_words(const std::map<int64_t, std::set<std::string>>& policies_by_window);
[[nodiscard]] std::string describe_policy_windows(std::span<const trace::ResultRow> rows);

}  // namespace kvscope::analysis
