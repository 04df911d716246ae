#pragma once

#include <string>

#include "engine/checkpoint/checkpoint.h"
#include "engine/common/progress.h"
#include "trace/records.h"

namespace kvscope::engine {

/// Adds to the record the eigenvalues of W^T W of every layer's query, key and value projection, whole (L, hidden) and
/// per head (L, H or G, d), descending: the squared singular values; KVSlimmer's Figures 8 and 9. Computed in f64 from
/// the checkpoint's weights, kept in the cache folder under the model's fingerprint, so that a second time costs
/// nothing.
/// @throws what the checkpoint throws; Cancelled
void add_spectra(const checkpoint::Checkpoint& checkpoint, const std::string& fingerprint, trace::ModelRecord& record,
                 Progress& progress);

/// What `add_spectra` takes on a machine of few cores, in seconds, about; 0 where the spectra are kept already.
double spectra_seconds(const checkpoint::ModelConfig& config, const std::string& fingerprint);

}  // namespace kvscope::engine
