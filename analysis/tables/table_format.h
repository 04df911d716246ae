#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/tables/table.h"

namespace kvscope::analysis {

enum class TableFormat { text, csv, markdown, latex, json, jsonl, html };

/// Parses text, csv, md, tex, json or jsonl, the formats of commands' output. @throws std::invalid_argument that lists
/// these names
[[nodiscard]] TableFormat table_format_from_name(std::string_view name);
[[nodiscard]] std::span<const std::string_view> table_format_names();

/// Returns the table as text that ends with a line break.
/// - csv: RFC 4180 with column names and all digits; empty cells are empty fields.
/// - json: an array of objects; jsonl: one object per line. Empty, NaN and infinite cells are null.
/// - html: the part of a page, for html_page().
/// - text, markdown, latex, html: titles with units, rounded numbers, the best number of each group in bold and the
///   second best underlined (not in text), no columns that are empty or repeat another, the note, and
///   Table::for_people. LaTeX needs the package booktabs.
/// @param width columns of the terminal, for text only; 0 sets no limit
/// @throws std::invalid_argument if a row and `columns` differ in length
[[nodiscard]] std::string format_table(const Table& table, TableFormat format, size_t width = 0);

/// Puts an apostrophe before each text that a spreadsheet would read as a formula (OWASP, CSV injection).
[[nodiscard]] Table safe_for_spreadsheets(Table table);

/// Formats a real number with `decimals` digits, or with an exponent if it is too small or too large for them.
[[nodiscard]] std::string format_real(double value, int decimals);

/// Formats a mean and its interval: "0.50 [0.30, 0.70]".
[[nodiscard]] std::string format_mean(const MeanCell& cell, int decimals);

/// Place of a number in its group.
enum class Rank { other, second, best };

/// Returns the rank of each cell (rows, columns). Numbers that are displayed alike have the same rank. All are `other`
/// if they are alike in the whole group, or if more than two are best; none is `second` if more than two would be.
[[nodiscard]] std::vector<std::vector<Rank>> ranks_of_cells(const Table& table);

/// Formats 12345 as "12,345".
[[nodiscard]] std::string format_count(int64_t value);

/// Formats a number of bytes as "12.3 MB".
[[nodiscard]] std::string format_bytes(double bytes);

}  // namespace kvscope::analysis
