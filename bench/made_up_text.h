// Text in several scripts for made-up prompts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvscope::bench {

struct MadeUpText {
    std::vector<std::int32_t> ids;
    std::vector<std::string> pieces;  ///< Their concatenation is the text.
};

/// Returns paragraphs of mostly Latin sentences, mixed with Chinese, Japanese, Arabic and Hindi sentences, emoji,
/// numbers and lines of code. Equal random numbers give equal text.
MadeUpText made_up_text(std::size_t n_tokens, std::uint64_t seed);

/// All token ids are below this.
int made_up_vocabulary_size();

}  // namespace kvscope::bench
