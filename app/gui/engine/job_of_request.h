#pragma once

#include "app/gui/session/engine_session.h"
#include "app/program/engine/run_job.h"

namespace kvscope::gui {

/// Converts a request to a job of `kvscope run` or `kvscope eval`, without spectra. If the request names no output, the
/// caller must set it.
[[nodiscard]] program::RunJob make_run_job(const RunRequest& request);

}  // namespace kvscope::gui
