#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/tokenizer/classifier_tokenizer.h"

namespace kvscope::engine {

/// Tokens that an encoder reads together: [begin, end).
struct Window {
    size_t begin = 0, end = 0;
    bool operator==(const Window&) const = default;
};

/// Cuts a text's tokens into windows of at most `room`: each ends behind the last full stop (or line break, where the
/// vocabulary has one) that fits, else before the last word that does not fit whole, else where it is full.
std::vector<Window> cut_into_windows(const checkpoint::ClassifierTokenizer& tokenizer,
                                     std::span<const checkpoint::TextToken> tokens, size_t room);

}  // namespace kvscope::engine
