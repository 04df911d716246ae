#pragma once

#include <string>

#include "analysis/table.h"
#include "app/gui/inspector/token_question.h"
#include "app/gui/session/prompt_text.h"
#include "app/gui/session/span_reports.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// A line for each compressed run that is shown, of all open traces that hold the same tokens: in how many heads it
/// keeps the token. A click selects the run. @returns the same as a table; without rows: nothing
/// is drawn
analysis::Table draw_runs_of_token(Context& context, const TaskSlot<SpanReports>& slot, const Document& document,
                                   const PromptText& prompt, const TokenQuestion& asked);

}  // namespace kvscope::gui
