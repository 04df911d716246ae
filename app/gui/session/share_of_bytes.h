#pragma once

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// Returns the bytes of a run's cache as a share of the full cache. NaN if it is not read yet or not known.
double share_of_full_bytes(Session& session, const RunKey& run);

}  // namespace kvscope::gui
