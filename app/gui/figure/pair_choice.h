#pragma once

#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Draws the choice of A and B on one line, as the view Runs does: "##<view> A", "swap##<view>", "##<view> B".
void draw_pair_choice(const Context& context, const char* view);

}  // namespace kvscope::gui
