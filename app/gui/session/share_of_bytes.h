#pragma once

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// What a run's cache holds, as a share of the full cache's bytes. NaN: not read yet, or not known.
double share_of_full_bytes(Session& session, const RunKey& run);

}  // namespace kvscope::gui
