#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvscope::bench {

struct MadeUpText {
    std::vector<std::int32_t> ids;
    std::vector<std::string> pieces;  ///< joined, they are the text
};

/// Returns paragraphs in several scripts, with emoji, numbers and lines of code. Equal seeds give equal text.
[[nodiscard]] MadeUpText made_up_text(std::size_t n_tokens, std::uint64_t seed);

[[nodiscard]] int made_up_vocabulary_size();

}  // namespace kvscope::bench
