#pragma once

#include "policies/registry/registry.h"
#include "trace/records/records.h"

namespace kvscope::analysis {

/// Returns the policy of a run in a trace or of a what-if.
/// @throws NothingToShow, naming the run, if this build does not know the policy or its parameters
[[nodiscard]] policies::PolicySpec policy_of_run(const trace::RunAttributes& run);

}  // namespace kvscope::analysis
