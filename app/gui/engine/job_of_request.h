#pragma once

#include "app/gui/session/engine_session.h"
#include "app/program/engine/run_job.h"

namespace kvscope::gui {

/// The job of `kvscope run` that does what was asked for. Spectra are left to when the model is loaded, an
/// output without a name to the caller.
program::RunJob job_of(const RunRequest& request);

}  // namespace kvscope::gui
