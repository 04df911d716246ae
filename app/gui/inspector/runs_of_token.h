#pragma once

#include <optional>
#include <vector>

#include "analysis/tables/table.h"
#include "app/gui/inspector/token_question.h"
#include "app/gui/session/prompt_text.h"
#include "app/gui/session/span_reports.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

struct RunOfToken {
    RunKey run;
    analysis::SpanReport report;
};

/// Returns the shown compressed runs and the run in question, from all open traces with the same tokens. Returns
/// nullopt until all are read.
std::optional<std::vector<RunOfToken>> ask_runs_of_token(Session& session, const TaskSlot<SpanReports>& slot,
                                                         const Document& document, const PromptText& prompt,
                                                         const TokenQuestion& asked);

/// Draws a line per run: in how many heads it keeps the token, or how many tokens of a range it keeps. A click selects
/// the run. Returns the lines as a table, without rows if nothing is drawn.
analysis::Table draw_runs_of_token(Context& context, std::vector<RunOfToken> runs, const PromptText& prompt,
                                   const TokenQuestion& asked);

}  // namespace kvscope::gui
