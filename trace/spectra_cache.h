// Cache of model spectra: one file per fingerprint in $XDG_CACHE_HOME/kvscope/spectra (or ~/.cache/kvscope/spectra).
#pragma once

#include "trace/reader.h"
#include "trace/records/records.h"

namespace kvscope::trace {

[[nodiscard]] bool has_cached_spectra(const ModelAttributes& model);

/// Fills the record's six spectrum arrays. Returns false and changes nothing if the cache lacks the model's spectra.
[[nodiscard]] bool read_cached_spectra(const ModelAttributes& model, ModelRecord& record);

/// Saves the record's six spectrum arrays. Ignores a cache folder that cannot be written.
void save_spectra_in_cache(const ModelAttributes& model, const ModelRecord& record);

/// Whether the trace or the cache has the spectra of the trace's model.
[[nodiscard]] bool has_model_spectra(const Reader& reader);

}  // namespace kvscope::trace
