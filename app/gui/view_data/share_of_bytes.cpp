#include "app/gui/view_data/share_of_bytes.h"

#include <limits>

#include "analysis/measures/bytes_share.h"

namespace kvscope::gui {

double share_of_full_bytes(Session& session, const RunKey& run) {
    static const TaskSlot<double> slot;
    const auto share =
        session.tasks.ask(slot, run.text(), session.stamp(run), [at = session.at(run)](const std::stop_token& stop) {
            return analysis::share_of_full_bytes(at.reader->with_stop(stop), at.prompt, at.run);
        });
    return share.value ? *share.value : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace kvscope::gui
