#pragma once

#include "trace/reader.h"

namespace kvscope::analysis {

/// Returns a run's cache size as a share of the full cache, or NaN if it is not recorded. Uses predicted sizes if the
/// full run has no `cache_bytes`.
[[nodiscard]] double share_of_full_bytes(const trace::Reader& reader, int prompt, int run);

}  // namespace kvscope::analysis
