#pragma once

#include <string>

#include "engine/checkpoint/checkpoint.h"
#include "engine/common/progress.h"
#include "trace/records/records.h"

namespace kvscope::engine {

/// Adds the eigenvalues of W^T W, in descending order, for each query, key and value projection (L, hidden) and each
/// head (L, H or G, d), as in KVSlimmer's Figures 8 and 9. Stores the results in the user's cache.
void add_projection_spectra(const checkpoint::Checkpoint& checkpoint, const std::string& fingerprint,
                            trace::ModelRecord& record, Progress& progress);

/// Returns the approximate seconds of add_projection_spectra() on a machine with few cores; 0 if the spectra are
/// stored.
[[nodiscard]] double estimate_spectra_seconds(const checkpoint::ModelConfig& config, const std::string& fingerprint);

}  // namespace kvscope::engine
