#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "analysis/drawing/figure_definition.h"

namespace kvscope::cli {

/// Returns the width of lists: that of the terminal, at most 100 columns.
[[nodiscard]] std::size_t list_columns();

/// Breaks a text into lines that begin at column `indent`. `lead` precedes the first line.
[[nodiscard]] std::string wrapped(const std::string& text, const std::string& lead, std::size_t indent,
                                  std::size_t columns);

/// Returns each definition's name, summary and options as text for the terminal.
[[nodiscard]] std::string definitions_text(std::span<const analysis::FigureDefinition> definitions,
                                           size_t columns = 100);

/// Returns definitions_text() for list_columns().
[[nodiscard]] std::string list_text(std::span<const analysis::FigureDefinition> definitions);

}  // namespace kvscope::cli
