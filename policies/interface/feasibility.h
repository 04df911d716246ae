#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "policies/interface/registry.h"

namespace kvscope::policies {

/// The known facts about a prompt that has not been read yet.
struct PromptAhead {
    std::optional<ModelShape> shape{};  ///< nullopt if no model is loaded
    std::string model_fingerprint{};
    int64_t n_tokens = 0;  ///< tokens that policies see; 0 if not counted yet
};

/// Returns the parameter that names the policy's file (its first text), or nullptr if the policy needs no file.
const Parameter* file_parameter(const PolicySpec& spec);

/// Returns the message with which Policy::begin or Policy::plan would refuse the budget, or an empty text. Checks only
/// counts of entries if the prompt's length or the model is unknown. May read the policy's file. Does not throw.
std::string obstacle_to(const PolicySpec& spec, const Budget& budget, const PromptAhead& prompt);

/// Returns the smallest accepted count of entries above `refused`, or nullopt if there is none or the unit is bytes.
std::optional<int64_t> least_entries(const PolicySpec& spec, int64_t refused, const PromptAhead& prompt);

/// @throws ParameterError if the model has no such layer
void require_filter_layer(const PassPlan& plan, const ModelShape& shape);

}  // namespace kvscope::policies
