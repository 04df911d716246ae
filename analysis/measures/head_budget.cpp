#include "analysis/measures/head_budget.h"

namespace kvscope::analysis {

std::vector<uint32_t> head_budgets(const KeptSets& kept) {
    std::vector<uint32_t> budgets;
    budgets.reserve(kept.n_layers * kept.n_rows);
    for (size_t layer = 0; layer < kept.n_layers; ++layer) {
        for (size_t row = 0; row < kept.n_rows; ++row) budgets.push_back(static_cast<uint32_t>(kept.count(layer, row)));
    }
    return budgets;
}

}  // namespace kvscope::analysis
