#pragma once

#include <cstddef>
#include <cstdint>

#include "analysis/tables/token_text.h"

namespace kvscope::analysis {

/// Whether a character must be drawn together with its neighbors: it joins with them, or is an emoji.
[[nodiscard]] bool joins_neighbours(uint32_t character);

/// Whether a character is placed on the preceding one, as accents and vowel signs are.
[[nodiscard]] bool is_mark(uint32_t character);

/// Whether a token and the next one must be drawn together: they share a character, or their letters join.
[[nodiscard]] bool is_drawn_with_next_token(const WholeText& text, size_t token);

/// Whether a token contains letters that must not be drawn one by one.
[[nodiscard]] bool has_letters_drawn_together(const WholeText& text, size_t token);

}  // namespace kvscope::analysis
