// Reads and writes shuffled and deflated chunks on several threads; HDF5 itself handles one chunk at a time. The files
// are the same as with HDF5's own filters.
#pragma once

#include <hdf5.h>

#include <string>

#include "trace/reader.h"

namespace kvscope::trace::h5 {

/// Writes all values of a data set. Returns false and does nothing if the data set is stored in another way.
/// @param values in the data set's own type
/// @param action for messages, e.g. "write /model/spectrum/q"
bool write_chunks(hid_t data_set, const void* values, const std::string& action);

/// Reads all values of a data set, or one block. Throws Failure if a chunk is damaged. Returns false if HDF5 has to
/// read them: other storage, a block that ends inside a chunk, or a chunk that was never written.
bool read_chunks(hid_t data_set, const Block* block, void* values, const std::string& action);

/// Unpacks all chunks without keeping them. Returns false if the data set is stored in another way.
/// Throws Failure if a chunk is damaged or missing.
bool check_chunks(hid_t data_set, const std::string& action);

}  // namespace kvscope::trace::h5
