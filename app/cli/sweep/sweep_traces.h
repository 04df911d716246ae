#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "app/cli/sweep/sweep_settings.h"

namespace kvscope::cli {

/// One trace of a sweep: all policies and budgets for one model, task and seed.
struct SweepTrace {
    std::string name;                    ///< file name without ".h5": "model-task-seed-0"
    std::vector<std::string> arguments;  ///< of `kvscope run` or `eval`, without the output
    size_t n_runs = 0;                   ///< of each prompt or sample, with the full run
};

/// Returns the traces in the order of models, tasks and seeds. A task without the option --seed has one trace per
/// model.
/// @throws std::invalid_argument for settings that no trace can have, with file and line
[[nodiscard]] std::vector<SweepTrace> traces_of_sweep(const std::vector<SweepSetting>& settings);

}  // namespace kvscope::cli
