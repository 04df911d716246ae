#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/token_report.h"
#include "app/gui/session/session.h"

namespace kvscope::gui {

/// What each run kept of a span of tokens.
using SpanReports = std::vector<std::pair<RunKey, analysis::SpanReport>>;

/// Of all runs of a document's shown prompt.
TaskResult<SpanReports> ask_span_reports(Session& session, const TaskSlot<SpanReports>& slot, const Document& document,
                                         int64_t first, int64_t last);

}  // namespace kvscope::gui
