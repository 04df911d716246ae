#pragma once

#include <string>
#include <vector>

#include "policies/api/definition.h"

namespace kvscope::policies {

/// Returns a parameter's accepted values: "on or off", "max, avg or none", "integer, odd, at least 1".
[[nodiscard]] std::string accepted_values(const Parameter& parameter);

/// Returns the page docs/policies.md, the output of `kvscope policies --format md`.
[[nodiscard]] std::string policies_markdown(const std::vector<Definition>& definitions);

}  // namespace kvscope::policies
