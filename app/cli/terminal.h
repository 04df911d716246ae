#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kvscope::cli {

/// Prints text for people to stdout, without control characters. @throws std::runtime_error if writing fails
void print(std::string_view text);

/// Prints data for programs to stdout, unchanged. @throws std::runtime_error if writing fails
void print_data(std::string_view data);

void print_to_stderr(std::string_view text);

/// Returns the text on one line, without control characters.
[[nodiscard]] std::string one_line(std::string_view text);

/// Returns the width of tables in characters: $COLUMNS or the terminal's width, or 0 (no limit) for files and pipes.
[[nodiscard]] size_t terminal_width();

}  // namespace kvscope::cli
