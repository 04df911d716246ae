#pragma once

#include <string>
#include <vector>

#include "policies/interface/policy.h"

namespace kvscope::policies {

/// Returns the values of a parameter as text: "on or off", "max, avg or none", "integer, odd, at least 1".
std::string accepted_values(const Parameter& parameter);

/// Returns the page docs/policies.md, which `kvscope policies --format md` prints.
std::string policies_markdown(const std::vector<Definition>& definitions);

}  // namespace kvscope::policies
