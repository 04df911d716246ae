#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "app/gui/tokens/prompt_column.h"

namespace kvscope::gui {

/// Shows in the current line to which character a token belongs if it has only some of the character's bytes.
void draw_shared_character(const PromptText& prompt, size_t token);

/// Shows a token's id, position and note, and where runs keep it: the run of `one` first, then a few others.
void draw_token_tooltip(Context& context, const PromptColumn& one, const std::vector<RunKey>& runs, int64_t token);

}  // namespace kvscope::gui
