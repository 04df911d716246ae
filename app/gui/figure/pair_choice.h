#pragma once

#include "app/gui/view/view.h"

namespace kvscope::gui {

/// The choice of A and B, the same as in Runs, on one line: "##<view> A", "swap##<view>", "##<view> B".
void choose_pair(const Context& context, const char* view);

}  // namespace kvscope::gui
