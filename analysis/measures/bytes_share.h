#pragma once

#include "trace/reader.h"

namespace kvscope::analysis {

/// What a run's cache holds of the prompt, as a share of the full cache's bytes: from `cache_bytes` of both, or the
/// predicted ones where the full run records no others; NaN where neither is recorded.
/// @throws what trace::Reader throws
double share_of_full_bytes(const trace::Reader& reader, int prompt, int run);

}  // namespace kvscope::analysis
