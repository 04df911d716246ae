#pragma once

#include <imgui.h>

#include <string>

#include "analysis/tables/table.h"
#include "analysis/token_report.h"
#include "app/gui/inspector/inspected_token.h"
#include "app/gui/view/view.h"
#include "app/gui/view_data/prompt_text.h"

namespace kvscope::gui {

/// Draws charts by layer: heads that keep the token, and the best head's score / cut-off. A click selects a layer.
void draw_layer_charts(Context& context, const analysis::TokenReport& report, ImU32 color, const std::string& measure);

/// Draws score, rank and cut-off of a token in each head of a layer. A click selects the head.
void draw_heads_of_layer(Context& context, const Document& document, const analysis::TokenReport& report, int layer,
                         int chosen, ImU32 color, const std::string& measure);
/// Returns the content of draw_heads_of_layer() as a table. @param run label of the run
[[nodiscard]] analysis::Table heads_table(const analysis::TokenReport& report, size_t layer, const std::string& run);

/// Draws the entries next to a head's cut-off and returns them as a table. A click selects the token.
[[nodiscard]] analysis::Table draw_entries_at_cut_off(Context& context, const TaskSlot<analysis::Border>& slot,
                                                      const PromptText& prompt, const InspectedToken& asked, int layer,
                                                      int row);

}  // namespace kvscope::gui
