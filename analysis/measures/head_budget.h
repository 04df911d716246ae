#pragma once

#include <cstdint>
#include <vector>

#include "analysis/measures/kept_sets.h"

namespace kvscope::analysis {

/// Returns the number of entries that each row keeps (L, R).
[[nodiscard]] std::vector<uint32_t> head_budgets(const KeptSets& kept);

}  // namespace kvscope::analysis
