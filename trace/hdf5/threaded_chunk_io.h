// Reads and writes shuffled and deflated chunks on several threads. The files equal those of HDF5's own filters.
#pragma once

#include <hdf5.h>

#include <string>

#include "trace/records/block.h"

namespace kvscope::trace::h5 {

/// Writes all values, which have the data set's type. Returns false without writing if HDF5 must pack the values.
[[nodiscard]] bool write_chunks(hid_t data_set, const void* values, const std::string& action);

/// Reads all values or one block. Throws Failure if a chunk is damaged. Returns false if HDF5 must read the values: the
/// chunks are not deflated, the block ends inside a chunk, or a chunk was never written.
[[nodiscard]] bool read_chunks(hid_t data_set, const Block* block, void* values, const std::string& action);

/// Reads a block of a table, in the layout of the file: texts of variable length are references to heaps
/// (global_heap.h).
/// @param element_bytes size of a row in the file. Returns false as read_chunks().
[[nodiscard]] bool read_stored_rows(hid_t data_set, std::size_t element_bytes, const Block& block, void* rows,
                                    const std::string& action);

/// Unpacks all chunks. Returns false if the chunks are not deflated. Throws Failure if a chunk is damaged or missing.
bool check_chunks(hid_t data_set, const std::string& action);

}  // namespace kvscope::trace::h5
