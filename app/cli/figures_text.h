#pragma once

#include <string>

namespace kvscope::cli {

/// Every figure with what it shows, its options and its sources, for people to read.
std::string figures_text();

}  // namespace kvscope::cli
