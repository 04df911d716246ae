#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/figure.h"
#include "analysis/tables/table.h"
#include "trace/records.h"

namespace kvscope::analysis {

/// Orders budgets by size: number of entries, then the exact share for budgets of bytes.
using BudgetKey = std::pair<int64_t, double>;
BudgetKey budget_key(const trace::RunAttributes& run);

/// Whether the budget is a share of the full cache's bytes, so that the run keeps all tokens.
bool has_budget_of_bytes(const trace::RunAttributes& run);

/// Column "budget" of tables with one row per run: entries per KV head, or, for budgets of bytes, the share of the full
/// cache's bytes as text ("75 %").
Column budget_column();
Cell budget_cell(const trace::RunAttributes& run);

bool is_full(const trace::RunAttributes& run);

/// Returns the look of each run in all views, tables and exported figures, independent of the shown selection. The
/// color depends on the policy (analysis/policy_color.h; `full` is black); other parameters are paler, then darker.
/// Dash and marker depend on the budget; the largest has a solid line with circles. Up to 20 budgets look different.
/// @param recorded runs whose budgets are assigned first, by size, so that a what-if does not change their look. Empty:
/// all runs
std::vector<LineStyle> run_styles(const std::vector<trace::RunAttributes>& runs,
                                  const std::vector<trace::RunAttributes>& recorded = {});

/// Returns the styles of several traces with the runs of one prompt each. Equal runs have the same hue, dash and
/// marker; the second trace is paler, the third darker. The first trace looks as it does alone.
/// @param recorded as in run_styles(); empty: the first trace's runs
std::vector<std::vector<LineStyle>> joint_run_styles(const std::vector<std::vector<trace::RunAttributes>>& traces,
                                                     const std::vector<trace::RunAttributes>& recorded = {});

/// Returns the label in the trace, or else policy and budget: "snapkv 128".
std::string recorded_label(const trace::RunAttributes& run);

/// Returns the label on screen, in figures and in tables: the user's label, or else recorded_label(). Files and recipes
/// use recorded_label().
std::string run_label(const trace::RunAttributes& run);

/// Returns the legend of the shown runs: one entry per policy and then one per budget if several policies share several
/// budgets; else, and if a run was renamed, one entry per run. @param styles from run_styles() or joint_run_styles()
std::vector<LegendEntry> run_legend(const std::vector<trace::RunAttributes>& runs, const std::vector<LineStyle>& styles,
                                    const std::vector<int>& shown);

}  // namespace kvscope::analysis
