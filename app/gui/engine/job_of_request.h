#pragma once

#include "app/gui/session/engine_session.h"
#include "app/program/engine/run_job.h"

namespace kvscope::gui {

/// Returns the `kvscope run` job of a request, without spectra. The caller sets the output if none is named.
program::RunJob job_of(const RunRequest& request);

}  // namespace kvscope::gui
