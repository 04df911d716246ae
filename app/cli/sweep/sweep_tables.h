#pragma once

#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "analysis/tables/table.h"
#include "app/cli/engine/predict_job.h"
#include "app/cli/sweep/sweep_runner.h"

namespace kvscope::cli {

struct PredictedTrace {
    SweepOutcome outcome;
    std::optional<JobPrediction> prediction{};  ///< unset if the trace is finished or cannot be run
};

/// Runs one short prompt of each unfinished trace. Writes only to a temporary folder.
/// @throws Stopped; std::runtime_error if the temporary folder cannot be used
[[nodiscard]] std::vector<PredictedTrace> predict_sweep(const SweepFolder& folder, std::span<const SweepTrace> traces,
                                                        int n_processes, const std::stop_token& stop);

/// Returns a table with a row per trace. Its note has the totals.
[[nodiscard]] analysis::Table table_of_predictions(std::span<const SweepTrace> traces,
                                                   std::span<const PredictedTrace> predictions, int n_processes);

[[nodiscard]] analysis::Table table_of_outcomes(std::span<const SweepTrace> traces,
                                                std::span<const SweepOutcome> outcomes);

}  // namespace kvscope::cli
