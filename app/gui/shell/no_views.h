#pragma once

#include "app/gui/drawing/theme.h"
#include "app/gui/view/actions.h"

namespace kvscope::gui {

/// In the middle of a window whose views are all closed: what brings them back, each line a click away.
void draw_no_views(Actions& actions, const Theme& theme);

}  // namespace kvscope::gui
