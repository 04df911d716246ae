#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "analysis/drawing/figure_definition.h"

namespace kvscope::cli {

/// Returns each definition's name, summary and options as text for the terminal.
[[nodiscard]] std::string definitions_text(std::span<const analysis::FigureDefinition> definitions,
                                           size_t columns = 100);

/// Declares the options of a command that lists definitions, as text or as the table that `table` returns.
[[nodiscard]] std::function<int()> declare_list(CLI::App& app, std::span<const analysis::FigureDefinition> definitions,
                                                const std::function<analysis::Table()>& table);

}  // namespace kvscope::cli
