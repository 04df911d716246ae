// Spectra of models' projections that were computed once, apart from any trace: one file for each model, by its
// fingerprint, in $XDG_CACHE_HOME/kvscope/spectra (else ~/.cache/…). A trace without spectra of its own has those of
// its model there.
#pragma once

#include "trace/reader.h"
#include "trace/records.h"

namespace kvscope::trace {

/// Of a model with this fingerprint and these shapes.
bool has_kept_spectra(const ModelAttributes& model);

/// Fills the record's six arrays. @returns false where none are kept, and then the record is as it was
bool read_kept_spectra(const ModelAttributes& model, ModelRecord& record);

/// Keeps the record's six arrays. A folder that cannot be written is done without.
void keep_spectra(const ModelAttributes& model, const ModelRecord& record);

/// Whether the spectra of the trace's model are in the trace or kept.
bool knows_spectra(const Reader& reader);

}  // namespace kvscope::trace
