#pragma once

#include <cstdint>
#include <vector>

#include "analysis/measures/kept_sets.h"

namespace kvscope::analysis {

/// Returns (L, R): the number of entries that each row keeps.
std::vector<uint32_t> head_budgets(const KeptSets& kept);

}  // namespace kvscope::analysis
