#pragma once

#include <optional>
#include <vector>

#include "analysis/tables/table.h"
#include "app/gui/inspector/inspected_token.h"
#include "app/gui/view/view.h"
#include "app/gui/view_data/prompt_text.h"
#include "app/gui/view_data/span_reports.h"

namespace kvscope::gui {

struct RunOfToken {
    RunKey run;
    analysis::SpanReport report;
};

/// Returns reports for `asked.run` and all shown compressed runs of the same tokens, or nullopt until all are read.
[[nodiscard]] std::optional<std::vector<RunOfToken>> request_token_reports(Session& session,
                                                                           const TaskSlot<SpanReports>& slot,
                                                                           const Document& document,
                                                                           const PromptText& prompt,
                                                                           const InspectedToken& asked);

/// Draws a line for each run about the tokens that the run keeps. Returns the lines as a table. A click selects a run.
[[nodiscard]] analysis::Table draw_runs_of_token(Context& context, std::vector<RunOfToken> runs,
                                                 const PromptText& prompt, const InspectedToken& asked);

}  // namespace kvscope::gui
