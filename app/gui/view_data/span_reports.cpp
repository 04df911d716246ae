#include "app/gui/view_data/span_reports.h"

#include <fmt/format.h>

namespace kvscope::gui {

TaskResult<SpanReports> ask_span_reports(Session& session, const TaskSlot<SpanReports>& slot, const Document& document,
                                         int64_t first, int64_t last) {
    const int prompt = document.prompt;
    return session.tasks.ask(
        slot, fmt::format("{} {}", document.id(), prompt),
        fmt::format("{} {} {}", document.runs_stamp(prompt), first, last),
        [reader = document.reader(), runs = document.keys(prompt), prompt, first, last](const std::stop_token& stop) {
            SpanReports reports{first, last, {}};
            for (auto& report : analysis::span_report(reader->with_stop(stop), prompt, first, last)) {
                const RunKey run = runs.at(static_cast<size_t>(report.run));
                reports.runs.emplace_back(run, std::move(report));
            }
            return reports;
        });
}

}  // namespace kvscope::gui
