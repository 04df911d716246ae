#pragma once

#include <imgui.h>

#include <string>

#include "analysis/tables/table.h"
#include "analysis/token_report.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Draws score, rank and cut-off of a token in each head of a layer. A click selects the head.
void draw_heads_of_layer(Context& context, const Document& document, const analysis::TokenReport& report, int layer,
                         int chosen, ImU32 color, const std::string& measure);
/// Returns the content of draw_heads_of_layer() as a table. @param run label of the run
[[nodiscard]] analysis::Table heads_table(const analysis::TokenReport& report, size_t layer, const std::string& run);

}  // namespace kvscope::gui
