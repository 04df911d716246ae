#pragma once

#include <vector>

#include "engine/classifier/token_classifier.h"
#include "engine/model/model.h"
#include "engine/prefill/prompt.h"

namespace kvscope::engine {

/// Returns the probability that the classifier keeps each token (N), averaged over the token's bytes. Tokens without a
/// word get 0; tokens outside the user's context (chat template, question) get NaN.
/// @throws RunError if the context is not found; std::invalid_argument if the context is not UTF-8; Stopped
[[nodiscard]] std::vector<float> prompt_probabilities(const Model& model, const Prompt& prompt,
                                                      const TokenClassifier& classifier,
                                                      const policies::TokenClassifierSettings& how, Progress& progress);

}  // namespace kvscope::engine
