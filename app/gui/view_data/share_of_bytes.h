#pragma once

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// Returns the size of a run's cache as a share of the full cache; NaN until it is known.
[[nodiscard]] double share_of_full_bytes(Session& session, const RunKey& run);

}  // namespace kvscope::gui
