#pragma once

#include <vector>

#include "engine/classifier/token_classifier.h"
#include "engine/inference/prompt.h"
#include "engine/model/model.h"

namespace kvscope::engine {

/// Returns, for each token that policies see (N), the probability that a classifier keeps it: the mean over its bytes,
/// which have the probabilities of their words. Tokens without words have 0. Tokens outside the user's context (chat
/// template, question, control tokens), even partly, have NaN.
/// @throws RunError if the context cannot be found in the prompt; std::invalid_argument if the context is not UTF-8;
///         Cancelled.
std::vector<float> prompt_probabilities(const Model& model, const Prompt& prompt, const TokenClassifier& classifier,
                                        const policies::TokenClassification& how, Progress& progress);

}  // namespace kvscope::engine
