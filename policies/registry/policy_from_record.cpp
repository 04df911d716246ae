#include "policies/registry/policy_from_record.h"

#include <algorithm>
#include <string>

#include "policies/api/storage_switching.h"

namespace kvscope::policies {

PolicySpec policy_from_record(std::string_view name, std::string_view parameters_json) {
    const Definition* definition = find_definition(name);
    if (!definition) throw ParameterError("this version of kvscope has no policy '" + std::string(name) + "'");
    try {
        return {definition, ParameterValues::from_json(definition->parameters, parameters_json)};
    } catch (const ParameterError& error) {
        throw ParameterError("the recorded parameters do not match this version's " + definition->name + ": " +
                             error.what());
    }
}

std::optional<Budget> recorded_budget(const PolicySpec& spec, int64_t budget, double budget_fraction) {
    if (spec.own_share()) return std::nullopt;
    if (spec.definition->budget_of == BudgetOf::bytes) return Budget{.is_share = true, .share = budget_fraction};
    return Budget{.count = budget};
}

bool set_recorded_switches(PolicySpec& spec, std::span<const std::uint32_t> steps, int64_t n_ids) {
    if (!spec.values.has("switches")) return false;
    const auto scheduled = parse_storage_switching("compressed", spec.values.text("switches")).steps;
    const bool agrees = steps.size() <= scheduled.size() && std::equal(steps.begin(), steps.end(), scheduled.begin());
    if (agrees && (steps.size() == scheduled.size() || scheduled[steps.size()] >= n_ids - 1)) return false;
    std::string text;
    for (const std::uint32_t step : steps) text += (text.empty() ? "" : "/") + std::to_string(step);
    spec.values.set("switches", text);
    return true;
}

}  // namespace kvscope::policies
