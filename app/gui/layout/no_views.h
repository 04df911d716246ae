#pragma once

#include "app/gui/drawing/theme.h"
#include "app/gui/view/action_registry.h"

namespace kvscope::gui {

void draw_hint_for_no_views(Actions& actions, const Theme& theme);

}  // namespace kvscope::gui
