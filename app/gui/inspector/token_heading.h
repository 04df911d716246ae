#pragma once

#include "app/gui/inspector/inspected_token.h"
#include "app/gui/session/prompt_text.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

void draw_token_heading(const Context& context, const PromptText& prompt, const InspectedToken& asked);

}  // namespace kvscope::gui
