#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "app/program/engine/run_job.h"
#include "engine/options/run_options.h"

namespace kvscope::cli {

/// Declares one text option of `kvscope run` for another command. The parsed value is stored in `value`.
[[nodiscard]] CLI::Option* declare_run_option(CLI::App& app, std::string engine::RunOptions::*member,
                                              std::string& value);

void declare_run_options(CLI::App& app, engine::RunOptions& options);

void declare_policy_and_budget_options(CLI::App& app, program::RunJob& job);

/// Declares --max-disk.
void declare_disk_limit(CLI::App& app, program::RunJob& job);

}  // namespace kvscope::cli
