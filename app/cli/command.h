#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace kvscope::cli {

/// A subcommand. Each file in app/cli/commands/ defines one, named after the file: `Command run_command()` in run.cpp.
struct Command {
    std::string name;
    std::string summary;
    std::string example;  ///< whole command lines for --help
    /// Declares the options and returns the action, which returns the exit code. The action throws
    /// std::invalid_argument for wrong usage (exit code 2) and other exceptions for failures (exit code 1).
    std::function<std::function<int()>(CLI::App&)> declare;
    bool hidden = false;      ///< omitted from the list of commands
    bool by_default = false;  ///< runs if the program is started without arguments
};

[[nodiscard]] const std::vector<Command>& commands();

}  // namespace kvscope::cli
