#pragma once

#include <cstddef>
#include <cstdint>

#include "analysis/tables/token_text.h"

namespace kvscope::analysis {

/// Whether a character joins, reorders or stacks with its neighbours, or is an emoji: two of them side by side must be
/// set together.
bool joins_neighbours(uint32_t character);

/// Whether a character stands on the one before it: accents, vowel signs.
bool is_mark(uint32_t character);

/// Whether a token and the next one must be set together: they share a character, or their letters join.
bool joins_next(const WholeText& text, size_t token);

/// Whether a token has letters of a kind that is never drawn one by one.
bool is_set_as_one(const WholeText& text, size_t token);

}  // namespace kvscope::analysis
