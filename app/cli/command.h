#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace kvscope::cli {

/// One subcommand. Each file in app/cli/commands/ defines one, by a function called after the file: `Command
/// run_command()` in run.cpp. The build lists them.
struct Command {
    std::string name;
    std::string summary;  ///< one sentence
    std::string example;  ///< whole command lines, shown by --help
    /// Declares the options and returns what runs after parsing. The action's result is the exit code; it throws
    /// std::invalid_argument for wrong usage (2) and other exceptions for failures (1).
    std::function<std::function<int()>(CLI::App&)> declare;
    bool hidden = false;      ///< not in the list of commands
    bool by_default = false;  ///< what the program does without arguments
};

/// All commands of this build, by file name.
const std::vector<Command>& commands();

}  // namespace kvscope::cli
