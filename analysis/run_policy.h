#pragma once

#include "policies/interface/registry.h"
#include "trace/records.h"

namespace kvscope::analysis {

/// The policy of a run of a trace, or of a what-if.
/// @throws NothingToShow, which names the run, where this build does not know the policy or its parameters.
policies::PolicySpec run_policy(const trace::RunAttributes& run);

}  // namespace kvscope::analysis
