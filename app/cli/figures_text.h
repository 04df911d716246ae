#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "analysis/drawing/figure_definition.h"

namespace kvscope::cli {

/// Returns each definition's name, summary and options as text for the terminal.
[[nodiscard]] std::string definitions_text(std::span<const analysis::FigureDefinition> definitions,
                                           size_t columns = 100);

/// Returns definitions_text() for the width of the terminal, at most 100 columns.
[[nodiscard]] std::string list_text(std::span<const analysis::FigureDefinition> definitions);

}  // namespace kvscope::cli
