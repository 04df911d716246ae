#include "policies/interface/recorded_policy.h"

#include <string>

namespace kvscope::policies {

PolicySpec recorded_policy(std::string_view name, std::string_view parameters_json) {
    const Definition* definition = find_definition(name);
    if (!definition) throw ParameterError("this program does not know the policy '" + std::string(name) + "'");
    try {
        return {definition, ParameterValues::from_json(definition->parameters, parameters_json)};
    } catch (const ParameterError& error) {
        throw ParameterError("its parameters are not those of this program's " + definition->name + ": " +
                             error.what());
    }
}

std::optional<Budget> recorded_budget(const PolicySpec& spec, int64_t budget, double budget_fraction) {
    if (spec.own_share()) return std::nullopt;
    if (spec.definition->budget_of == BudgetOf::bytes) return Budget{.is_share = true, .share = budget_fraction};
    return Budget{.count = budget};
}

}  // namespace kvscope::policies
