#include "policies/bases/window_policy.h"

#include <algorithm>
#include <string>

#include "common/counted.h"
#include "policies/bases/score_operations.h"

namespace kvscope::policies {

WindowPolicy::WindowPolicy(const ParameterValues& values)
    : window_(static_cast<int>(values.integer("window"))),
      granularity_(values.has("granularity") ? granularity_of(values) : Granularity::kv_head),
      positions_(key_positions_of(values)) {}

Needs WindowPolicy::needs() const { return {.window_queries = window_}; }

void WindowPolicy::begin(const RunContext& context) {
    if (context.budget < context.n_tokens && context.budget <= window_) {
        throw BudgetError("a budget of " + counted(context.budget, "entry") + " is not above the window of " +
                          std::to_string(window_) + ", which is always kept. Give a budget above " +
                          std::to_string(window_) + ", or a smaller window.");
    }
    context_ = context;
    rows_ = n_rows(context.shape, granularity_);
    n_prefix_ = std::max<int64_t>(context.n_tokens - window_, 0);
    layer_budgets_ = layer_budgets(std::min(context.budget, context.n_tokens) - (context.n_tokens - n_prefix_));
}

std::vector<int64_t> WindowPolicy::layer_budgets(int64_t c) const {
    return std::vector<int64_t>(static_cast<size_t>(context_.shape.n_layers), c);
}

}  // namespace kvscope::policies
