#pragma once

namespace kvscope::cli {

/// Runs the program. @returns the exit code: 0, 1 if the command failed, 2 for wrong usage
[[nodiscard]] int run_program(int argc, char** argv);

}  // namespace kvscope::cli
