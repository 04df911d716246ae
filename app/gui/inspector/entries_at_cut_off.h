#pragma once


#include "analysis/tables/table.h"
#include "analysis/token_report.h"
#include "app/gui/inspector/inspected_token.h"
#include "app/gui/view/view.h"
#include "app/gui/view_data/prompt_text.h"

namespace kvscope::gui {

/// Draws the entries next to a head's cut-off and returns them as a table. A click selects the token.
[[nodiscard]] analysis::Table draw_entries_at_cut_off(Context& context, const TaskSlot<analysis::Border>& slot,
                                                      const PromptText& prompt, const InspectedToken& asked, int layer,
                                                      int row);

}  // namespace kvscope::gui
