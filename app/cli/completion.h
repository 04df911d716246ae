#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace kvscope::cli {

[[nodiscard]] const std::vector<std::string>& shells_with_completion();

/// Returns a script that makes the shell complete the program's commands, their options and the values of these.
[[nodiscard]] std::string completion_script(CLI::App& program, const std::string& shell);

}  // namespace kvscope::cli
