#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/figures/figure_format.h"

namespace kvscope::gui {

/// Returns the dialog's question before replacing files from figures::files_to_replace; empty if there are none.
std::string files_in_the_way(const std::vector<std::filesystem::path>& there);

/// Returns why a file name's extension cannot be used, or an empty text. @param is_picture false for a table only
std::string problem_with_ending(const std::filesystem::path& path, bool is_picture);

/// Writes a figure or its numbers in the format of the extension, also tsv. @returns the written files
/// @throws std::runtime_error for a file not in `confirmed`, and what figures::export_figure throws
std::vector<std::filesystem::path> write_exported(const figures::Exported& what, const std::filesystem::path& path,
                                                  const figures::ExportOptions& options,
                                                  const std::vector<std::filesystem::path>& confirmed);

/// Returns "x.pdf written", or the number of pages and their files. @param files must not be empty
std::string written_in_words(const std::vector<std::filesystem::path>& files);

/// Returns the table with tabs between the cells, for spreadsheets. Tabs and line breaks within cells become spaces.
std::string tab_separated(const analysis::Table& table);

}  // namespace kvscope::gui
