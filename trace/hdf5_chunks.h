// Data sets in chunks that are shuffled and deflated, as kvscope writes them: packed and unpacked here, several chunks
// at once, rather than by HDF5, which does one after the other. In the file they are what HDF5's own filters make.
#pragma once

#include <hdf5.h>

#include <string>

#include "trace/reader.h"

namespace kvscope::trace::h5 {

/// Writes all values of a data set; false, and nothing is done, where it is not stored so.
/// @param values in the data set's own type
/// @param action of messages, as "write /model/spectrum/q"
bool write_chunks(hid_t data_set, const void* values, const std::string& action);

/// Reads all values, or those of a block within the data set; false where it is not stored so, the block ends within
/// chunks, or some of it was never written: HDF5 knows what to make of that.
/// @throws Failure where a chunk is damaged
bool read_chunks(hid_t data_set, const Block* block, void* values, const std::string& action);

/// Unpacks all chunks and keeps nothing; false where the data set is not stored so.
/// @throws Failure where a chunk is damaged or missing
bool check_chunks(hid_t data_set, const std::string& action);

}  // namespace kvscope::trace::h5
