#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "policies/interface/registry.h"

namespace kvscope::policies {

/// Known facts about a prompt that has not been read yet, and its model.
struct PromptAhead {
    std::optional<ModelShape> shape{};  ///< nullopt if no model is loaded
    std::string model_fingerprint{};
    int64_t n_tokens = 0;  ///< tokens that policies see; 0 if not counted yet
};

/// Returns the parameter that names the policy's file (its first text), or nullptr if the policy needs no file.
const Parameter* file_parameter(const PolicySpec& spec);

/// Returns the error message with which Policy::begin or Policy::plan would refuse the budget, or an empty text. If the
/// prompt is not tokenized or no model is loaded, only counts of entries are checked. Errors that depend on a model's
/// weights are not found. May read the policy's file. Does not throw.
std::string obstacle_to(const PolicySpec& spec, const Budget& budget, const PromptAhead& prompt);

/// Returns the smallest count of entries above `refused` that the policy accepts. Returns nullopt if a larger count
/// does not help or the budget is in bytes.
std::optional<int64_t> least_entries(const PolicySpec& spec, int64_t refused, const PromptAhead& prompt);

/// @throws ParameterError if the model has no such layer
void require_filter_layer(const PassPlan& plan, const ModelShape& shape);

}  // namespace kvscope::policies
