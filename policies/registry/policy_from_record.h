#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "policies/api/budget.h"
#include "policies/registry/registry.h"

namespace kvscope::policies {

/// Returns the policy of a recorded run. @throws ParameterError if this version has no such policy or parameters
[[nodiscard]] PolicySpec policy_from_record(std::string_view name, std::string_view parameters_json);

/// Returns the budget that reproduces a recorded run, or nullopt if the parameters determine it.
[[nodiscard]] std::optional<Budget> recorded_budget(const PolicySpec& spec, int64_t budget, double budget_fraction);

/// Sets the parameter `switches` to the recorded steps. Returns whether `spec` was changed.
/// @param n_ids length of the recorded answer, which has n_ids - 1 steps
bool set_recorded_switches(PolicySpec& spec, std::span<const std::uint32_t> steps, int64_t n_ids);

}  // namespace kvscope::policies
