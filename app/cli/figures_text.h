#pragma once

#include <cstddef>
#include <string>

namespace kvscope::cli {

/// Every figure with what it shows, its options and its sources, for people to read, in lines of at most `columns`.
std::string figures_text(size_t columns = 100);

}  // namespace kvscope::cli
