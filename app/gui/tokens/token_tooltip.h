#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "app/gui/tokens/prompt_column.h"

namespace kvscope::gui {

/// Draws which character a token belongs to if the token has only some of its bytes. Stays on the current line.
void draw_shared_character(const PromptText& prompt, size_t token);

/// Draws a token's id, position and note, and where the runs keep it. Lists the run of `one` first and limits their
/// number.
void draw_token_tooltip(Context& context, const PromptColumn& one, const std::vector<RunKey>& runs, int64_t token);

}  // namespace kvscope::gui
