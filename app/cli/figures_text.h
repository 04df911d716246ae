#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/figure_definition.h"

namespace kvscope::cli {

/// Returns the list of figures with summaries, options and sources, in lines of at most `columns` characters.
std::string figures_text(size_t columns = 100);

/// Returns the entry of one figure or ranking in such a list.
std::string described_with_options(const std::string& name, const std::string& summary,
                                   const std::vector<analysis::FigureOption>& options, size_t columns);

}  // namespace kvscope::cli
