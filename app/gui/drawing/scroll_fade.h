#pragma once

#include "app/gui/drawing/theme.h"

namespace kvscope::gui {

/// Fades out the lower edge of an ImGui window that can be scrolled down. Call after drawing its contents.
void draw_scroll_fade(const Theme& theme);

}  // namespace kvscope::gui
