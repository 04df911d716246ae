#pragma once

namespace kvscope::cli {

/// Everything that `main` does.
/// @returns the exit status: 0, 1 where the command failed, 2 where it cannot be understood
int run_program(int argc, char** argv);

}  // namespace kvscope::cli
