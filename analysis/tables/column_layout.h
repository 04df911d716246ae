#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace kvscope::analysis {

/// Cells as text, row by row, the heading first; all rows have the same length.
using TextCells = std::vector<std::vector<std::string>>;

/// Formats cells as aligned columns, two spaces apart, with a line break after each row.
/// If a row is wider than `width`, texts are broken at spaces and inside long words; numbers are never broken.
/// Further columns follow in blocks, which repeat the key columns (all columns up to the first text column).
/// @param is_number one per column; columns of numbers are aligned right
/// @param width columns of the terminal; 0 sets no limit
[[nodiscard]] std::string format_aligned_columns(const TextCells& cells, const std::vector<bool>& is_number,
                                                 size_t width);

/// Breaks text at spaces, and inside longer words, into lines of at most `width` columns. Returns at least one line.
[[nodiscard]] std::vector<std::string> break_into_lines(const std::string& text, size_t width);

}  // namespace kvscope::analysis
