#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "app/program/engine/run_job.h"

namespace kvscope::cli {

/// @param parts "prompts" or "samples"
void declare_shard_option(CLI::App& app, std::string& shard, const std::string& parts);

/// @param text "2/4", or "auto" for the task of a Slurm job array @throws std::invalid_argument
[[nodiscard]] trace::Shard shard_from_text(const std::string& text);

/// Sets the job's shard, and the shard's file as output. Does nothing if `shard` is empty.
/// @throws std::invalid_argument
void set_shard(program::RunJob& job, const std::string& shard);

}  // namespace kvscope::cli
