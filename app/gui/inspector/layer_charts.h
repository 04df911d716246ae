#pragma once

#include <imgui.h>

#include <string>

#include "analysis/token_report.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Draws charts by layer: heads that keep the token, and the best head's score / cut-off. A click selects a layer.
void draw_layer_charts(Context& context, const analysis::TokenReport& report, ImU32 color, const std::string& measure);

}  // namespace kvscope::gui
