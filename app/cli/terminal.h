#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kvscope::cli {

/// Writes what people read to standard output, as blocks of lines: whatever a trace, a model or a file's name holds,
/// the terminal is not commanded by it (analysis/tables/terminal_text.h).
/// @throws std::runtime_error where it cannot be written
void print(std::string_view text);

/// Writes what programs read (JSON, CSV, commands for a shell) byte for byte.
/// @throws std::runtime_error where it cannot be written
void print_data(std::string_view data);

/// Writes a line for people to standard error.
void complain(std::string_view text);

/// A name or a message within a line: as `print` shows it, and without line breaks of its own.
std::string one_line(std::string_view text);

/// Columns that tables may take: what COLUMNS says, else what standard output's terminal has; 0 (any) where it is none,
/// so that a row stays a line in files and pipes.
size_t terminal_width();

}  // namespace kvscope::cli
