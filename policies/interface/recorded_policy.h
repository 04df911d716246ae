#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "policies/interface/budget.h"
#include "policies/interface/registry.h"

namespace kvscope::policies {

/// Returns the policy of a run from the attributes `policy` and `parameters_json`. @throws ParameterError
PolicySpec recorded_policy(std::string_view name, std::string_view parameters_json);

/// Returns the budget that reproduces a recorded run, or nullopt if the policy's parameters determine it.
std::optional<Budget> recorded_budget(const PolicySpec& spec, int64_t budget, double budget_fraction);

/// Sets `switches` to the recorded steps, which differ from the scheduled ones if the user changed the cache's form.
/// @param n_ids length of the recorded answer; it has one step less, because no step follows the last token
/// @returns whether `spec` was changed
bool set_recorded_switches(PolicySpec& spec, std::span<const std::uint32_t> steps, int64_t n_ids);

}  // namespace kvscope::policies
