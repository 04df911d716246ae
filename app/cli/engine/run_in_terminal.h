#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "app/cli/engine/model_options.h"
#include "app/program/engine/prepared_job.h"

namespace kvscope::cli {

struct TerminalOptions {
    ModelOptions model;
    std::filesystem::path timings;  ///< JSON file for the seconds of each phase; empty for none
    bool quiet = false;
    size_t n_unusable = 0;          ///< prompts that were left out before the job
    std::filesystem::path outcome;  ///< JSON file for the numbers of failed runs and left-out prompts; empty for none
};

/// Declares the hidden option --outcome, with which `kvscope sweep` learns that a trace is complete.
void declare_outcome(CLI::App& app, TerminalOptions& options);

/// Returns "2 runs failed" for the file of --outcome, an empty text if all runs succeeded, or nullopt if there is no
/// such file, because the trace is not complete.
[[nodiscard]] std::optional<std::string> read_remark_on_outcome(const std::filesystem::path& file);

/// Runs the job with progress on stderr. @throws std::runtime_error if the user stopped the job
[[nodiscard]] program::RunOutcome run_with_progress(const program::RunJob& job, const TerminalOptions& options);

/// Runs the job with progress, then prints the table of runs and the answers to stdout unless `quiet`.
/// @returns 0, or 1 if a run failed
[[nodiscard]] int run_in_terminal(const program::RunJob& job, const TerminalOptions& options);

/// Runs the demo in the terminal: writes the trace and figures to `folder` and prints the table of runs.
[[nodiscard]] int run_demo_in_terminal(const std::filesystem::path& folder, bool force);

}  // namespace kvscope::cli
