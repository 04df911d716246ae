#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "policies/registry/registry.h"

namespace kvscope::policies {

/// Known facts about a prompt before it is read.
struct UnreadPrompt {
    std::optional<ModelShape> shape{};  ///< nullopt if no model is loaded
    std::string model_fingerprint{};
    int64_t n_tokens = 0;  ///< tokens that policies see; 0 if not counted yet
};

/// Returns the first text parameter, which names the policy's file. Returns nullptr if the policy needs no file.
[[nodiscard]] const Parameter* find_file_parameter(const PolicySpec& spec);

/// Returns the error message of the policy for this budget, or an empty text. Does not throw.
[[nodiscard]] std::string infeasible_budget_reason(const PolicySpec& spec, const Budget& budget,
                                                   const UnreadPrompt& prompt);

/// Returns the smallest accepted count above `refused`, or nullopt if there is none or the budget is in bytes.
[[nodiscard]] std::optional<int64_t> find_smallest_feasible_count(const PolicySpec& spec, int64_t refused,
                                                                  const UnreadPrompt& prompt);

/// @throws ParameterError if the model does not have the filter's layer
void require_filter_layer(const PromptFilter& filter, const ModelShape& shape);

}  // namespace kvscope::policies
