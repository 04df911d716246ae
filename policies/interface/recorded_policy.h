#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "policies/interface/budget.h"
#include "policies/interface/registry.h"

namespace kvscope::policies {

/// Returns the policy of a recorded run from the attributes `policy` and `parameters_json`.
/// @throws ParameterError if this build has no such policy or its parameters differ.
PolicySpec recorded_policy(std::string_view name, std::string_view parameters_json);

/// Returns the budget that reproduces a recorded run: entries, or the exact share of bytes. Returns nullopt if the
/// policy's parameters determine the share.
std::optional<Budget> recorded_budget(const PolicySpec& spec, int64_t budget, double budget_fraction);

/// Sets the parameter `switches` to the decode steps after which a recorded run's cache changed its form. These can
/// differ from the scheduled steps, since the user can change the form during decoding.
/// @param steps as recorded, ascending
/// @param n_ids length of the recorded answer; it has one step less, because no step follows the last token
/// @returns whether `spec` was changed
bool set_recorded_switches(PolicySpec& spec, std::span<const std::uint32_t> steps, int64_t n_ids);

}  // namespace kvscope::policies
