#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "policies/interface/budget.h"
#include "policies/interface/registry.h"

namespace kvscope::policies {

/// The policy of a recorded run, from the run's attributes `policy` and `parameters_json`.
/// @throws ParameterError where this build has no policy of that name, or one with other parameters.
PolicySpec recorded_policy(std::string_view name, std::string_view parameters_json);

/// The budget of a trace's run, as it would be asked for again: entries, or the exact share of bytes; nullopt where the
/// policy's parameters decide it.
std::optional<Budget> recorded_budget(const PolicySpec& spec, int64_t budget, double budget_fraction);

/// Sets the parameter `switches` to the steps of its answer behind which a recorded run's cache changed its form, where
/// they are not those that the parameter schedules: changes can be asked for while a run decodes.
/// @param steps as recorded, ascending
/// @param n_ids length of the recorded answer: nothing follows its last token, so that it has a step less
/// @returns whether `spec` was changed
bool set_recorded_switches(PolicySpec& spec, std::span<const std::uint32_t> steps, int64_t n_ids);

}  // namespace kvscope::policies
