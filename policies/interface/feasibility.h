#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "policies/interface/registry.h"

namespace kvscope::policies {

/// A prompt that is not read yet, and the model that is to read it, as far as they are known.
struct PromptAhead {
    std::optional<ModelShape> shape{};  ///< nullopt: no model is loaded
    std::string model_fingerprint{};
    int64_t n_tokens = 0;  ///< that policies see; 0: not counted yet
};

/// The parameter of a policy that needs a file which names it, the first that is a text; nullptr where none is needed.
const Parameter* file_parameter(const PolicySpec& spec);

/// Why a policy would fail at a budget, in the words that its run would fail with: what Policy::begin and Policy::plan
/// refuse, before anything is read. Empty where nothing is known to stand against it. Of a prompt whose tokens are not
/// counted yet, or without a model, only counts of entries are judged. What a model's weights alone decide is not.
/// It may read the policy's file, and throws nothing.
std::string obstacle_to(const PolicySpec& spec, const Budget& budget, const PromptAhead& prompt);

/// The least count of entries, above one that the policy refuses, that it takes. nullopt where a larger one does not
/// help, and of policies whose budget is one of bytes.
std::optional<int64_t> least_entries(const PolicySpec& spec, int64_t refused, const PromptAhead& prompt);

/// @throws ParameterError for a layer that the model has not
void require_filter_layer(const PassPlan& plan, const ModelShape& shape);

}  // namespace kvscope::policies
