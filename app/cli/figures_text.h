#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/figure_definition.h"

namespace kvscope::cli {

[[nodiscard]] std::string figures_text(size_t columns = 100);

[[nodiscard]] std::string format_help_entry(const std::string& name, const std::string& summary,
                                            const std::vector<analysis::FigureOption>& options, size_t columns);

}  // namespace kvscope::cli
