#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/sweep/trace_options.h"

namespace kvscope::cli {

/// A setting of a sweep: an option of `kvscope run` or `eval` with its values.
struct SweepSetting {
    std::string option;               ///< TraceOption::name
    std::vector<std::string> values;  ///< of a flag: "true" or "false"
    std::string origin;               ///< for messages: "sweep.yaml:3", or "--budget" for the command line
    std::string task = {};            ///< the only task that has the setting; empty for all tasks
};

/// Reads a YAML file of options and their values. Keys may be written with '_' or '-'.
/// @throws std::runtime_error if the file is unreadable; std::invalid_argument with file and line for wrong contents
[[nodiscard]] std::vector<SweepSetting> read_sweep_file(const std::filesystem::path& path);

/// Returns the settings of a file, except those that the command line gives, and the settings of the command line.
/// @throws std::invalid_argument for several values of an option that takes one
[[nodiscard]] std::vector<SweepSetting> with_command_line(std::vector<SweepSetting> settings,
                                                          const GivenOptions& given);

/// Makes the paths of existing models, files, folders and traces absolute, so that the settings do not depend on the
/// current folder.
void make_paths_absolute(std::vector<SweepSetting>& settings);

/// Returns the settings as a file for read_sweep_file(). The defaults of all other options are comments.
[[nodiscard]] std::string sweep_file_text(const std::vector<SweepSetting>& settings);

/// Returns the values of an option for all tasks; empty if it is not set.
[[nodiscard]] std::vector<std::string> values_of_setting(const std::vector<SweepSetting>& settings,
                                                         std::string_view option);

}  // namespace kvscope::cli
