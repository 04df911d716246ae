#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/prefill/prompt.h"

namespace kvscope::engine {

/// A prompt's text and the range of the user's context in it.
struct ContextSpan {
    std::string text;              ///< text of all tokens
    std::vector<size_t> token_at;  ///< (tokens + 1) offset of each token in `text`
    size_t begin = 0, end = 0;     ///< range between the chat template's prefix and the question or suffix
};

/// Finds the context by rendering the chat template with another text. @throws RunError if the prompt does not match
[[nodiscard]] ContextSpan find_context_in_prompt(const Model& model, const Prompt& prompt, const std::stop_token& stop);

}  // namespace kvscope::engine
