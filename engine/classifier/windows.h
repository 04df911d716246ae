#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/tokenizer/classifier_tokenizer.h"

namespace kvscope::engine {

/// Range of tokens that an encoder reads together: [begin, end).
struct Window {
    size_t begin = 0, end = 0;
    bool operator==(const Window&) const = default;
};

/// Cuts tokens into windows of at most `room` tokens. A window ends after the last full stop that fits (or line break,
/// if the vocabulary has one), else before the last word that does not fit completely, else when it is full.
std::vector<Window> cut_into_windows(const checkpoint::ClassifierTokenizer& tokenizer,
                                     std::span<const checkpoint::TextToken> tokens, size_t room);

}  // namespace kvscope::engine
