#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/results/result.h"
#include "analysis/runs/task_scores.h"

namespace kvscope::analysis {

/// Returns sentences that say how far the rows of a table can be trusted: assess_task_validity() for scores, then
/// budgets of at least the prompt's length, budgets that runs exceed or do not use, runs that hold at least full's
/// bytes, runs whose answers all equal full's, and ties at the cut-off. Each kind of remark is one sentence with the
/// runs that it concerns.
/// @param groups of a whole table @param advice as in assess_task_validity()
[[nodiscard]] std::vector<std::string> verdicts(std::span<const TaskGroup> groups, Advice advice = Advice::shown);

/// Returns assess_task_validity(), without advice, of each task with scores, such as those of several traces, which may
/// contain the same samples; empty if no run has a score.
[[nodiscard]] std::string validity_of_tasks(std::span<const Result> results);

}  // namespace kvscope::analysis
