#pragma once

#include "app/gui/inspector/token_question.h"
#include "app/gui/session/prompt_text.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

void draw_token_heading(const Context& context, const PromptText& prompt, const TokenQuestion& asked);

}  // namespace kvscope::gui
