#pragma once

#include <string>
#include <string_view>

#include "policies/registry/registry.h"

namespace kvscope::policies {

/// Sets the policy's parameter `window`, unless its text sets it or the policy has none.
void set_default_window(PolicySpec& spec, std::string_view text, int window);

/// Returns the label of the policy after set_default_window(). @throws ParameterError as parse_policy()
[[nodiscard]] std::string with_default_window(const std::string& text, int window);

}  // namespace kvscope::policies
