#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/inference/prompt.h"
#include "engine/model/model.h"

namespace kvscope::engine {

/// A prompt's tokens as text, and the bytes of it that are the user's context.
struct ContextSpan {
    std::string text;              ///< what all tokens stand for, one after the other
    std::vector<size_t> token_at;  ///< (tokens + 1) bytes at which they begin
    size_t begin = 0, end = 0;     ///< between what the chat template puts in front, and the question and what follows
};

/// Finds the context by what the prompt's chat template puts around another one in its place. White space may differ,
/// since tokenizers add some.
/// @throws RunError where the prompt does not begin or end so.
ContextSpan find_context(const Model& model, const Prompt& prompt);

}  // namespace kvscope::engine
