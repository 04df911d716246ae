#pragma once

#include <string>
#include <vector>

#include "policies/interface/policy.h"

namespace kvscope::policies {

/// What a parameter takes, for people: "on or off", "max, avg or none", "integer, odd, at least 1".
std::string accepted_values(const Parameter& parameter);

/// The policies as a Markdown page, from their definitions alone: docs/policies.md and `kvscope policies --format md`.
std::string policies_markdown(const std::vector<Definition>& definitions);

}  // namespace kvscope::policies
