#pragma once

#include <filesystem>
#include <string>

#include "app/cli/engine/model_options.h"
#include "app/program/engine/run_job.h"

namespace kvscope::cli {

/// How a job is run on the command line.
struct TerminalOptions {
    ModelOptions model;
    std::filesystem::path timings;  ///< JSON file with the seconds of each phase; empty: none
    bool quiet = false;
};

/// Runs the job with its progress on standard error; unless `quiet`, the table of runs and their answers end it, on
/// standard output.
/// @returns 0, or 1 where a run failed
/// @throws std::invalid_argument for wrong usage, other exceptions for failures
int run_in_terminal(const program::RunJob& job, const TerminalOptions& options);

/// The main job on the default model, without a window: the demo's trace in `folder`, the table, the figures.
int run_demo_in_terminal(const std::filesystem::path& folder, bool force);

}  // namespace kvscope::cli
