#pragma once

#include <imgui.h>

#include <string>

#include "analysis/tables/table.h"
#include "analysis/token_report.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// "Why was it kept or dropped?", a line for each head of a layer: score, rank and cut-off. A click selects the head.
/// @param chosen the head whose border is shown; @param measure what the scores are, for tooltips
void draw_heads_of_layer(Context& context, const Document& document, const analysis::TokenReport& report, int layer,
                         int chosen, ImU32 color, const std::string& measure);
/// The same as a table. @param run its label
analysis::Table heads_table(const analysis::TokenReport& report, size_t layer, const std::string& run);

}  // namespace kvscope::gui
