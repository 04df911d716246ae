#pragma once

#include "app/gui/drawing/theme.h"

namespace kvscope::gui {

/// Where the current window scrolls on downwards, its lower edge fades out: what is cut off there is not its end. To be
/// called once all else is drawn in it.
void draw_scroll_fade(const Theme& theme);

}  // namespace kvscope::gui
