#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/figures/figure_format.h"

namespace kvscope::gui {

/// Returns the dialog's question before replacing these files, a result of figures::files_to_replace; empty if none
/// exist.
std::string files_in_the_way(const std::vector<std::filesystem::path>& there);

/// Returns why a file name's extension cannot be used, or an empty text if it can.
/// @param is_picture false for a table without a figure
std::string problem_with_ending(const std::filesystem::path& path, bool is_picture);

/// Writes a figure or its numbers in the format of the file's extension: a format of `kvscope export`, or tsv.
/// @param confirmed files that may be replaced
/// @returns the files written
/// @throws std::runtime_error that names an existing file that was not confirmed; what figures::export_figure throws
std::vector<std::filesystem::path> write_exported(const figures::Exported& what, const std::filesystem::path& path,
                                                  const figures::ExportOptions& options,
                                                  const std::vector<std::filesystem::path>& confirmed);

/// Returns "x.pdf written", or the number of pages and their files. @param files must not be empty
std::string written_in_words(const std::vector<std::filesystem::path>& files);

/// Returns the table with tabs between the cells, for spreadsheets. Tabs and line breaks within cells become spaces.
std::string tab_separated(const analysis::Table& table);

}  // namespace kvscope::gui
