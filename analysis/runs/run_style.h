#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/drawing/figure.h"
#include "analysis/tables/table.h"
#include "trace/records/records.h"

namespace kvscope::analysis {

/// Sort key of budgets: the number of entries, then the exact share for budgets of bytes.
using BudgetKey = std::pair<int64_t, double>;
[[nodiscard]] BudgetKey budget_sort_key(const trace::RunAttributes& run);

/// Whether the budget is a share of the full cache's bytes. Such a run keeps all tokens.
[[nodiscard]] bool has_budget_of_bytes(const trace::RunAttributes& run);

/// Returns the column "budget": entries per KV head, or "75 %" for a share of the full cache's bytes.
[[nodiscard]] Column budget_column();
[[nodiscard]] Cell budget_cell(const trace::RunAttributes& run);

/// Returns the look of each run, which is the same in all views and exports. The color depends on policy and
/// parameters; dash and marker depend on the budget.
/// @param recorded Budgets of these runs get dashes and markers first, in order of size. If empty, `runs` are used.
[[nodiscard]] std::vector<LineStyle> run_styles(const std::vector<trace::RunAttributes>& runs,
                                                const std::vector<trace::RunAttributes>& recorded = {});

/// Returns the styles of several traces. Equal runs have the same hue, dash and marker; the second trace is paler, the
/// third darker.
[[nodiscard]] std::vector<std::vector<LineStyle>> run_styles_of_traces(
    const std::vector<std::vector<trace::RunAttributes>>& traces,
    const std::vector<trace::RunAttributes>& recorded = {});

/// Returns the label in the trace, or else policy and budget: "snapkv 128".
[[nodiscard]] std::string recorded_or_default_label(const trace::RunAttributes& run);

/// Returns the user's label, or else recorded_or_default_label(). Files and recipes use recorded_or_default_label().
[[nodiscard]] std::string run_label(const trace::RunAttributes& run);

/// Returns the first run with the policy and the parameters of this run. The number identifies a series of a figure.
[[nodiscard]] int series_of_run(const std::vector<trace::RunAttributes>& runs, int run);

/// Returns the legend of the shown runs: by policy and by budget if possible, otherwise by run.
[[nodiscard]] std::vector<LegendEntry> run_legend(const std::vector<trace::RunAttributes>& runs,
                                                  const std::vector<LineStyle>& styles, const std::vector<int>& shown);

}  // namespace kvscope::analysis
