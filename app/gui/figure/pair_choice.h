#pragma once

#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Draws the choice of A and B on one line: "##<view> A", "swap##<view>", "##<view> B". Runs shows the same choice.
void choose_pair(const Context& context, const char* view);

}  // namespace kvscope::gui
