#include "policies/registry/feasibility.h"

#include <exception>
#include <vector>

namespace kvscope::policies {
namespace {

/// Assumed prompt length before tokenization, longer than any reasonable budget.
constexpr int64_t many_tokens = int64_t{1} << 20;
/// Assumed shape before a model is loaded. A budget that is too small for this shape is too small for every model.
constexpr ModelShape smallest_shape{1, 1, 1, 64};

void begin_on(const PolicySpec& spec, RunContext context, const UnreadPrompt& prompt) {
    const std::vector<int32_t> any_ids(prompt.n_tokens > 0 ? static_cast<size_t>(prompt.n_tokens) : 0, 0);
    context.token_ids = any_ids;
    context.n_vocabulary = 1;
    context.tokenize = [](std::string_view text) { return std::vector<int32_t>(text.empty() ? 0 : 1, 0); };
    const auto policy = spec.create();
    policy->begin(context);
    if (any_ids.empty() || !prompt.shape) return;
    if (const auto* appends = policy.as<AppendsTokens>()) (void)appends->appended(context);
    if (const auto* filters = policy.as<FiltersPrompt>()) require_filter_layer(filters->filter(context), *prompt.shape);
}

}  // namespace

const Parameter* find_file_parameter(const PolicySpec& spec) {
    if (!spec.definition->needs_file) return nullptr;
    for (const auto& parameter : spec.values.declared())
        if (parameter.kind == ParameterKind::text) return &parameter;
    return nullptr;
}

std::string infeasible_budget_reason(const PolicySpec& spec, const Budget& budget, const UnreadPrompt& prompt) {
    const bool is_known = prompt.shape && prompt.n_tokens > 0;
    const BudgetOf of = spec.definition->budget_of;
    RunContext context;
    context.shape = prompt.shape.value_or(smallest_shape);
    context.model_fingerprint = prompt.model_fingerprint;
    context.n_tokens = prompt.n_tokens > 0 ? prompt.n_tokens : many_tokens;
    if (budget.is_share) context.budget_share = budget.share;
    try {
        if (!is_known && (budget.is_share || of == BudgetOf::bytes || spec.definition->needs_file)) {
            spec.create();  // throws if parameters contradict each other
            return {};
        }
        context.budget = budget.resolve(context.n_tokens, of);
        begin_on(spec, context, prompt);
    } catch (const BudgetError& error) {
        return error.what();
    } catch (const std::exception& error) {
        if (is_known) return error.what();
    }
    return {};
}

std::optional<int64_t> find_smallest_feasible_count(const PolicySpec& spec, int64_t refused,
                                                    const UnreadPrompt& prompt) {
    if (spec.definition->budget_of == BudgetOf::bytes) return std::nullopt;
    const auto takes = [&](int64_t entries) {
        return infeasible_budget_reason(spec, {.count = entries}, prompt).empty();
    };
    int64_t enough = refused;
    do {
        if (enough >= many_tokens) return std::nullopt;
        enough *= 2;
    } while (!takes(enough));
    while (enough - refused > 1) {
        const int64_t between = refused + (enough - refused) / 2;
        (takes(between) ? enough : refused) = between;
    }
    return enough;
}

void require_filter_layer(const PromptFilter& filter, const ModelShape& shape) {
    const auto* after = std::get_if<FilterLayer>(&filter);
    if (after && after->layer >= shape.n_layers)
        throw ParameterError("layer " + std::to_string(after->layer) + " does not exist. The model has layers 0 to " +
                             std::to_string(shape.n_layers - 1));
}

}  // namespace kvscope::policies
