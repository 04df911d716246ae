#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/figure.h"
#include "analysis/tables/table.h"
#include "trace/records.h"

namespace kvscope::analysis {

/// What tells budgets apart, the larger one greater: entries, and of a budget of bytes its exact share.
using BudgetKey = std::pair<int64_t, double>;
BudgetKey budget_key(const trace::RunAttributes& run);

/// Whether its budget is a share of the full cache's bytes: it keeps every token.
bool has_budget_of_bytes(const trace::RunAttributes& run);

/// The column "budget" of tables with a row a run, and what stands in it: entries that a KV head keeps, or, where the
/// budget is a share of the full cache's bytes, that share as text, "75 %".
Column budget_column();
Cell budget_cell(const trace::RunAttributes& run);

/// Whether it is the run of the full cache.
bool is_full(const trace::RunAttributes& run);

/// How each run of a prompt looks in every view, table and exported figure, whichever of them are shown: a policy has
/// its colour in every trace (analysis/policy_color.h; `full` is black), with other parameters paler, then darker, and
/// a budget has a dash and a marker, the largest a solid line with circles. Up to 20 budgets look different.
/// @param recorded the runs whose budgets come first, by size; those of others follow as they appear, so that a what-if
/// changes the look of no other run. Empty: all of them
std::vector<LineStyle> run_styles(const std::vector<trace::RunAttributes>& runs,
                                  const std::vector<trace::RunAttributes>& recorded = {});

/// The same for several traces, each with the runs of one prompt: what is alike has one hue, dash and marker in all of
/// them, paler in the second, darker in the third trace. The first looks as it does alone: `recorded` are its runs
/// where none are given.
std::vector<std::vector<LineStyle>> joint_run_styles(const std::vector<std::vector<trace::RunAttributes>>& traces,
                                                     const std::vector<trace::RunAttributes>& recorded = {});

/// "snapkv 128": as the trace's label has it, else policy and budget.
std::string recorded_label(const trace::RunAttributes& run);

/// What a run is called on the screen, in figures and in tables: the label that a person gave it, else
/// recorded_label(). What is stored, and what the recipe says, has the recorded one.
std::string run_label(const trace::RunAttributes& run);

/// Legend of some of a prompt's runs. Where several policies share several budgets: one entry per policy, then one per
/// budget; otherwise, and where one of them was renamed, one per run. @param styles run_styles(runs), or what they are
/// beside other traces
std::vector<LegendEntry> run_legend(const std::vector<trace::RunAttributes>& runs, const std::vector<LineStyle>& styles,
                                    const std::vector<int>& shown);

}  // namespace kvscope::analysis
