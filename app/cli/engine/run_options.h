#pragma once

#include <CLI/CLI.hpp>

#include "app/program/engine/run_job.h"
#include "engine/options/run_options.h"

namespace kvscope::cli {

/// Declares all options of a run but those that ModelOptions declares for every command. They are kept in `options`,
/// which has to be there until the arguments are parsed.
void declare_run_options(CLI::App& app, engine::RunOptions& options);

/// --policy and --budget.
void declare_policies(CLI::App& app, program::RunJob& job);

}  // namespace kvscope::cli
