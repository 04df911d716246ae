#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/tokenizer/classifier/classifier_tokenizer.h"

namespace kvscope::engine {

/// Tokens [begin, end) that an encoder reads together.
struct Window {
    size_t begin = 0, end = 0;
    [[nodiscard]] bool operator==(const Window&) const = default;
};

/// Cuts tokens into windows of at most `room` tokens, if possible after a full stop or line break, else before a word.
[[nodiscard]] std::vector<Window> cut_into_windows(const checkpoint::ClassifierTokenizer& tokenizer,
                                                   std::span<const checkpoint::TextToken> tokens, size_t room);

}  // namespace kvscope::engine
