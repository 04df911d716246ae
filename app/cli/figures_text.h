#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/figure_definition.h"

namespace kvscope::cli {

/// Every figure with what it shows, its options and its sources, for people to read, in lines of at most `columns`.
std::string figures_text(size_t columns = 100);

/// The part of it that is of one thing.
std::string described_with_options(const std::string& name, const std::string& summary,
                                   const std::vector<analysis::FigureOption>& options, size_t columns);

}  // namespace kvscope::cli
