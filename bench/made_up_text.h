// Text in several scripts, piece by piece, for traces of prompts that nobody wrote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvscope::bench {

struct MadeUpText {
    std::vector<std::int32_t> ids;
    std::vector<std::string> pieces;  ///< together they are the text
};

/// Paragraphs of mostly Latin sentences, with Chinese, Japanese, Arabic and Hindi ones, emoji, numbers and lines of
/// code among them. The same for the same numbers.
MadeUpText made_up_text(std::size_t n_tokens, std::uint64_t seed);

/// All ids are below.
int made_up_vocabulary_size();

}  // namespace kvscope::bench
