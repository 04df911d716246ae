#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/figures/figure_format.h"

namespace kvscope::gui {

/// For the dialog's objection, of what figures::files_to_replace has found; empty: nothing is there.
std::string files_in_the_way(const std::vector<std::filesystem::path>& there);

/// Why nothing can be written to a file of that name, whose ending says as what; empty: it can.
/// @param is_picture whether there is a figure, not a table alone
std::string problem_with_ending(const std::filesystem::path& path, bool is_picture);

/// Writes a figure or its numbers in the format of the file's extension: those of `kvscope export`, and tsv.
/// @param confirmed the files that may be replaced
/// @returns the files written
/// @throws std::runtime_error that names the file which was not confirmed, and what figures::export_figure throws
std::vector<std::filesystem::path> write_exported(const figures::Exported& what, const std::filesystem::path& path,
                                                  const figures::ExportOptions& options,
                                                  const std::vector<std::filesystem::path>& confirmed);

/// "x.pdf written", or how many pages, and where. @param files at least one
std::string written_in_words(const std::vector<std::filesystem::path>& files);

/// Tabs between the fields, as spreadsheets take it from the clipboard; a field's own tabs and breaks become spaces.
std::string tab_separated(const analysis::Table& table);

}  // namespace kvscope::gui
