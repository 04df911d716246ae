#include "app/gui/view_data/share_of_bytes.h"

#include <fmt/format.h>

#include <limits>
#include <vector>

#include "analysis/measures/result_row.h"

namespace kvscope::gui {

double share_of_full_bytes(Session& session, const RunKey& run) {
    static const TaskSlot<std::vector<trace::ResultRow>> slot;
    const RunAt at = session.at(run);
    const auto rows = session.tasks.ask(
        slot, fmt::format("{} {}", run.document, run.prompt), session.document(run.document)->runs_stamp(run.prompt),
        [reader = at.reader, prompt = at.prompt](const std::stop_token& stop) {
            const auto ignore = [](const trace::TraceError&) {};  // the run's share is then unknown
            return analysis::result_rows_of_prompt(reader->with_stop(stop), prompt, ignore);
        });
    if (!rows.value || static_cast<size_t>(at.run) >= rows.value->size())
        return std::numeric_limits<double>::quiet_NaN();
    return analysis::share_of_full_bytes(*rows.value, (*rows.value)[static_cast<size_t>(at.run)]);
}

}  // namespace kvscope::gui
