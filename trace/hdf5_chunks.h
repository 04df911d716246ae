// Reads and writes shuffled and deflated chunks with several threads, because HDF5 handles one chunk at a time. The
// file is the same as with HDF5's own filters.
#pragma once

#include <hdf5.h>

#include <string>

#include "trace/reader.h"

namespace kvscope::trace::h5 {

/// Writes all values of a data set. Returns false and does nothing if the data set has another storage layout.
/// @param values in the data set's own type
/// @param action for messages, e.g. "write /model/spectrum/q"
bool write_chunks(hid_t data_set, const void* values, const std::string& action);

/// Reads all values of a data set, or one block. Returns false if HDF5 has to read them: the storage layout differs,
/// the block ends inside a chunk, or a chunk was never written. Throws Failure if a chunk is damaged.
bool read_chunks(hid_t data_set, const Block* block, void* values, const std::string& action);

/// Unpacks all chunks without keeping them. Returns false if the data set has another storage layout.
/// Throws Failure if a chunk is damaged or missing.
bool check_chunks(hid_t data_set, const std::string& action);

}  // namespace kvscope::trace::h5
