#pragma once

#include <optional>
#include <vector>

#include "analysis/tables/table.h"
#include "app/gui/inspector/token_question.h"
#include "app/gui/session/prompt_text.h"
#include "app/gui/session/span_reports.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// A run and what it did with the token.
struct RunOfToken {
    RunKey run;
    analysis::SpanReport report;
};

/// The compressed runs that are shown, and the one asked about, of all open traces that hold the same tokens; nullopt
/// until all of it is read.
std::optional<std::vector<RunOfToken>> ask_runs_of_token(Session& session, const TaskSlot<SpanReports>& slot,
                                                         const Document& document, const PromptText& prompt,
                                                         const TokenQuestion& asked);

/// A line for each of them that is still there: in how many heads it keeps the token, or how
/// many tokens of a range. A click selects the run.
/// @returns the same as a table; without rows: nothing is drawn
analysis::Table draw_runs_of_token(Context& context, std::vector<RunOfToken> runs, const PromptText& prompt,
                                   const TokenQuestion& asked);

}  // namespace kvscope::gui
