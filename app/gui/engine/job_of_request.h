#pragma once

#include "app/gui/session/engine_session.h"
#include "app/program/engine/run_job.h"

namespace kvscope::gui {

/// Returns the `kvscope run` job of a request, without spectra. The caller sets an output that the request does not
/// name.
program::RunJob job_of(const RunRequest& request);

}  // namespace kvscope::gui
