#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "app/gui/tokens/prompt_column.h"

namespace kvscope::gui {

/// Of a token that has only some bytes of a character: which one. On the current line, which goes on.
void draw_shared_character(const PromptText& prompt, size_t token);

/// A token's id, place and note, and where the runs keep it: the one that is pointed at, then as many as stay readable.
void draw_token_tooltip(Context& context, const PromptColumn& one, const std::vector<RunKey>& runs, int64_t token);

}  // namespace kvscope::gui
