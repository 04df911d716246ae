#pragma once

#include <filesystem>

#include "app/cli/engine/model_options.h"
#include "app/program/engine/prepared_job.h"

namespace kvscope::cli {

struct TerminalOptions {
    ModelOptions model;
    std::filesystem::path timings;  ///< JSON file for the seconds of each phase; empty for none
    bool quiet = false;
};

/// Runs the job with progress on stderr. @throws std::runtime_error if the user stopped the job
[[nodiscard]] program::RunOutcome run_with_progress(const program::RunJob& job, const TerminalOptions& options);

/// Runs the job with progress, then prints the table of runs and the answers to stdout unless `quiet`.
/// @returns 0, or 1 if a run failed
[[nodiscard]] int run_in_terminal(const program::RunJob& job, const TerminalOptions& options);

/// Runs the demo in the terminal: writes the trace and figures to `folder` and prints the table of runs.
[[nodiscard]] int run_demo_in_terminal(const std::filesystem::path& folder, bool force);

}  // namespace kvscope::cli
