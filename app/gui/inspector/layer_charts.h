#pragma once

#include <imgui.h>

#include <string>

#include "analysis/token_report.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Draws two charts by layer: how many heads keep the token, and the best head's score relative to its cut-off.
/// Clicking or dragging selects a layer. @param measure definition of the scores for tooltips
void draw_layer_charts(Context& context, const analysis::TokenReport& report, ImU32 color, const std::string& measure);

}  // namespace kvscope::gui
