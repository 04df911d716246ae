#pragma once

#include <cstdint>
#include <vector>

#include "analysis/measures/kept_sets.h"

namespace kvscope::analysis {

/// (L, R): entries that each row keeps, as policies that move budget between heads or layers shared it out.
std::vector<uint32_t> head_budgets(const KeptSets& kept);

}  // namespace kvscope::analysis
