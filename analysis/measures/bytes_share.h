#pragma once

#include "trace/reader.h"

namespace kvscope::analysis {

/// Returns the size of a run's cache as a share of the full cache's bytes. If the full run has no `cache_bytes`, both
/// sizes are the predicted ones. Returns NaN if neither is recorded.
/// @throws what trace::Reader throws
double share_of_full_bytes(const trace::Reader& reader, int prompt, int run);

}  // namespace kvscope::analysis
