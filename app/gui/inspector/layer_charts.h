#pragma once

#include <imgui.h>

#include <string>

#include "analysis/token_report.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Two charts with a bar per layer: how many heads keep the token and, where there are scores, the best head's score
/// against its cut-off. A click selects the layer, dragging goes through
/// the layers. @param measure what the scores are, for tooltips
void draw_layer_charts(Context& context, const analysis::TokenReport& report, ImU32 color, const std::string& measure);

}  // namespace kvscope::gui
