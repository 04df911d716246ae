#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace kvscope::analysis {

/// Cells as text, line by line, the heading first; all lines have as many.
using TextCells = std::vector<std::vector<std::string>>;

/// Cells in columns with two spaces between them, each line ended by a line break.
///
/// Where that is wider than `width`, headings and cells of text are broken at spaces (within a word where it is long),
/// so that the highest row has as few lines as possible. Where the columns still do not fit side by side, those that
/// are too many follow below, behind an empty line, each part with the key columns: all up to the first one of text.
/// Numbers are never broken.
/// @param is_number those columns are set to the right; one for each cell of a line
/// @param width columns of the terminal; 0: as wide as the table is
std::string columns_of_text(const TextCells& cells, const std::vector<bool>& is_number, size_t width);

/// Text as lines of at most `width` columns, broken at spaces, and within words that are longer. One line at least.
std::vector<std::string> broken_lines(const std::string& text, size_t width);

}  // namespace kvscope::analysis
