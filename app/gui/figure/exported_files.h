#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/figures/figure_format.h"

namespace kvscope::gui {

/// Returns the question whether these existing files may be replaced, or an empty text if there are none.
[[nodiscard]] std::string overwrite_question(const std::vector<std::filesystem::path>& there);

/// Returns why the extension cannot be used, or an empty text. @param is_picture false if the output is only a table
[[nodiscard]] std::string problem_with_ending(const std::filesystem::path& path, bool is_picture);

/// Writes a figure or its numbers. The extension sets the format and may also be .tsv. @returns the written files
/// @throws std::runtime_error if a file exists that is not in `confirmed`; also throws like figures::export_figure
std::vector<std::filesystem::path> write_exported(const figures::Exported& what, const std::filesystem::path& path,
                                                  const figures::ExportOptions& options,
                                                  const std::vector<std::filesystem::path>& confirmed);

/// Returns "x.pdf written", or the number of pages with the first and last file. @param files must not be empty
[[nodiscard]] std::string describe_written_files(const std::vector<std::filesystem::path>& files);

/// Returns the table with tabs between cells. Tabs and line breaks in cells become spaces.
[[nodiscard]] std::string tab_separated(const analysis::Table& table);

}  // namespace kvscope::gui
