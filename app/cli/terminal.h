#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kvscope::cli {

/// Writes lines for people to stdout, without control characters. @throws std::runtime_error if stdout cannot be
/// written
void print(std::string_view text);

/// Writes data for programs to stdout, byte for byte. @throws std::runtime_error if stdout cannot be written
void print_data(std::string_view data);

void complain(std::string_view text);

/// Returns a name or message as `print` shows it, on one line.
std::string one_line(std::string_view text);

/// Returns the width for tables: COLUMNS, else the terminal's width, else 0 (unlimited) for files and pipes.
size_t terminal_width();

}  // namespace kvscope::cli
