// Reads and writes shuffled and deflated chunks on several threads. The files equal those of HDF5's own filters.
#pragma once

#include <hdf5.h>

#include <string>

#include "trace/reader.h"

namespace kvscope::trace::h5 {

/// Writes all values, given in the data set's own type. Returns false and writes nothing for any other kind of storage.
bool write_chunks(hid_t data_set, const void* values, const std::string& action);

/// Reads all values or one block. Throws Failure if a chunk is damaged. Returns false if HDF5 must read the values:
/// other storage, a block that ends inside a chunk, or a chunk that was never written.
bool read_chunks(hid_t data_set, const Block* block, void* values, const std::string& action);

/// Unpacks all chunks to check them. Returns false for other storage. Throws Failure if a chunk is damaged or missing.
bool check_chunks(hid_t data_set, const std::string& action);

}  // namespace kvscope::trace::h5
