#pragma once

#include "app/gui/inspector/token_question.h"
#include "app/gui/session/prompt_text.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Draws the token in large type, its position and id, and a few words of context.
void draw_token_heading(const Context& context, const PromptText& prompt, const TokenQuestion& asked);

}  // namespace kvscope::gui
