#pragma once

#include "app/gui/drawing/theme.h"

namespace kvscope::gui {

/// Fades out the lower edge of the current ImGui window if it can be scrolled further down. Call after drawing
/// everything else in it.
void draw_scroll_fade(const Theme& theme);

}  // namespace kvscope::gui
