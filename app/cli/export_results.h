#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace kvscope::cli {

/// Programs whose result files `export --results` writes.
[[nodiscard]] const std::vector<std::string>& programs_with_result_files();

/// Writes the results of traces as files of another program. Prints the number of omitted rows to stderr.
/// @param program one of programs_with_result_files() @param folder for all files @returns the exit code
[[nodiscard]] int export_results(const std::vector<std::filesystem::path>& traces, const std::string& program,
                                 const std::filesystem::path& folder, bool force);

}  // namespace kvscope::cli
