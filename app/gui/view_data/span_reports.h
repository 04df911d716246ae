#pragma once

#include <utility>
#include <vector>

#include "analysis/token_report.h"
#include "app/gui/session/session.h"

namespace kvscope::gui {

struct SpanReports {
    int64_t first = 0;
    int64_t last = 0;
    std::vector<std::pair<RunKey, analysis::SpanReport>> runs;
};

/// Returns the reports of all runs of a document's shown prompt, or the last reports while new ones are computed.
[[nodiscard]] TaskResult<SpanReports> ask_span_reports(Session& session, const TaskSlot<SpanReports>& slot,
                                                       const Document& document, int64_t first, int64_t last);

}  // namespace kvscope::gui
