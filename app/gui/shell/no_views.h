#pragma once

#include "app/gui/drawing/theme.h"
#include "app/gui/view/actions.h"

namespace kvscope::gui {

/// Draws the ways to open a view when all views are closed.
void draw_no_views(Actions& actions, const Theme& theme);

}  // namespace kvscope::gui
