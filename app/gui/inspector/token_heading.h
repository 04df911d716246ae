#pragma once

#include "app/gui/inspector/inspected_token.h"
#include "app/gui/view/view.h"
#include "app/gui/view_data/prompt_text.h"

namespace kvscope::gui {

void draw_token_heading(const Context& context, const PromptText& prompt, const InspectedToken& asked);

}  // namespace kvscope::gui
