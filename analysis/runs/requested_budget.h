#pragma once

#include <optional>

#include "policies/api/budget.h"
#include "trace/records/records.h"

namespace kvscope::analysis {

/// Returns the budget that the user requested for a run; nullopt if the trace's recipe does not contain it.
[[nodiscard]] inline std::optional<policies::Budget> requested_budget(const trace::RunAttributes& run) {
    try {
        return policies::parse_budget(run.requested_budget);
    } catch (const policies::BudgetError&) {
        return std::nullopt;
    }
}

}  // namespace kvscope::analysis
