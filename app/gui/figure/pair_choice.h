#pragma once

#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Draws the choice of A and B, shared with Runs, on one line: "##<view> A", "swap##<view>", "##<view> B".
void choose_pair(const Context& context, const char* view);

}  // namespace kvscope::gui
