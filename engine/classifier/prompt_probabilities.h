#pragma once

#include <vector>

#include "engine/classifier/token_classifier.h"
#include "engine/inference/prompt.h"
#include "engine/model/model.h"

namespace kvscope::engine {

/// For each token that policies see of a prompt (N) the probability that a classifier keeps it: the mean over its
/// bytes, of which each has that of its word; 0 for a token without words. NaN for tokens that are not wholly the
/// user's context, that is those of the chat template and of the question, and for control tokens.
/// @throws RunError where the context cannot be told from the chat template; std::invalid_argument for a context that
///         is not UTF-8; Cancelled.
std::vector<float> prompt_probabilities(const Model& model, const Prompt& prompt, const TokenClassifier& classifier,
                                        const policies::TokenClassification& how, Progress& progress);

}  // namespace kvscope::engine
