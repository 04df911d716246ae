#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "app/gui/tokens/prompt_column.h"

namespace kvscope::gui {

/// If a token has only some bytes of a character, shows that character in the current line.
void draw_shared_character(const PromptText& prompt, size_t token);

/// Draws the text and the number of a token on one line of a tooltip.
void draw_token_line(Context& context, const Document& document, int64_t token);

/// Shows a token's id, position and note, and where the token is kept: first by the run of `one`, then by `runs`.
void draw_token_tooltip(Context& context, const PromptColumn& one, const std::vector<RunKey>& runs, int64_t token);

}  // namespace kvscope::gui
