#pragma once

#include <string_view>

#include "policies/interface/registry.h"

namespace kvscope::policies {

/// The policy of a recorded run, from the run's attributes `policy` and `parameters_json`.
/// @throws ParameterError where this build has no policy of that name, or one with other parameters.
PolicySpec recorded_policy(std::string_view name, std::string_view parameters_json);

}  // namespace kvscope::policies
