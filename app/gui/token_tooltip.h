#pragma once

#include <cstdint>
#include <vector>

#include "app/gui/prompt_column.h"

namespace kvscope::gui {

/// A token's id, place and note, and where each of the runs keeps it.
void draw_token_tooltip(Context& context, const PromptColumn& one, const std::vector<RunKey>& runs, int64_t token);

}  // namespace kvscope::gui
