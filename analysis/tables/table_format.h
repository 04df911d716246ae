#pragma once

#include <span>
#include <string>
#include <string_view>

#include "analysis/tables/table.h"

namespace kvscope::analysis {

enum class TableFormat { text, csv, markdown, latex, json, jsonl };

/// @throws std::invalid_argument naming the known ones. Known: text, csv, md, tex, json, jsonl.
TableFormat table_format_from_name(std::string_view name);
std::span<const std::string_view> table_format_names();

/// The whole table as text that ends with a line break.
/// csv:   RFC 4180, header of column names, every digit of a real, an empty field for an empty cell, NaN as NaN.
/// json:  an array of objects; jsonl: one object a line. Empty, NaN and infinite are null; what is JSON itself
///        stands as that.
/// text, markdown, latex: titles with units, `decimals` digits, best of a column and group (Row::group) in bold (not in
/// text); thousands are
///        separated in text and latex; columns in which no row has anything are left out. LaTeX needs the package
///        booktabs. Their cells are `terminal_text`s of one line; those for programs hold what the table holds.
/// @param width of text alone: columns of the terminal that it is to fit into (column_layout.h says how); 0: any
/// @throws std::invalid_argument when a row has not as many cells as there are columns.
std::string format_table(const Table& table, TableFormat format, size_t width = 0);

/// The table with an apostrophe before each text and column name that a spreadsheet would read as a formula: those that
/// begin with = + - @, a tab or a line break (OWASP, CSV injection). Numbers stay as they are.
Table safe_for_spreadsheets(Table table);

/// A real as every form for people writes it: `decimals` digits, an exponent where it would show as zero or not fit.
std::string format_real(double value, int decimals);

/// 12345 as "12,345".
std::string format_count(int64_t value);

/// "12.3 MB"
std::string format_bytes(double bytes);

}  // namespace kvscope::analysis
