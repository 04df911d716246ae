#pragma once

#include <string>

#include "analysis/tables/table.h"
#include "analysis/token_report.h"
#include "app/gui/inspector/token_question.h"
#include "app/gui/session/prompt_text.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// The entries beside a head's cut-off: who won, who lost, by how little. A click selects the token.
/// @returns the same as a table; without rows: nothing is drawn
analysis::Table draw_border(Context& context, const TaskSlot<analysis::Border>& slot, const PromptText& prompt,
                            const TokenQuestion& asked, int layer, int row);

}  // namespace kvscope::gui
