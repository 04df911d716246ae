#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "app/program/engine/run_job.h"
#include "engine/options/run_options.h"

namespace kvscope::cli {

/// Declares one option of a run that is a text, for a command that has it as well, as `run` has it. Kept in `value`.
CLI::Option* declare_run_option(CLI::App& app, std::string engine::RunOptions::*member, std::string& value);

/// Declares all options of a run but those that ModelOptions declares. They are kept in `options`,
/// which has to be there until the arguments are parsed.
void declare_run_options(CLI::App& app, engine::RunOptions& options);

/// --policy and --budget.
void declare_policies(CLI::App& app, program::RunJob& job);

}  // namespace kvscope::cli
