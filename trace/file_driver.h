// What the HDF5 drivers of files being read and of files being written have in common.
#pragma once

#include <hdf5.h>

#include <cstddef>

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

namespace kvscope::trace {

/// An open file of one of the drivers. Members of its own go into a struct that begins with this.
struct DriverFile {
    H5FD_t base;  // first, as HDF5 asks
    int descriptor;
    haddr_t length;  ///< as HDF5 is to believe it
    haddr_t end_of_allocation;
};

/// A driver that still needs `open`, `close`, `read` and `write`.
/// @param number beyond HDF5's own; it only has to be unique in this process
H5FD_class_t file_driver(const char* name, int number);

/// Reads `size` bytes; beyond the file's end there are zeros, as HDF5's own driver has it. Returns errno, or 0.
int read_whole(int descriptor, haddr_t address, std::size_t size, void* buffer);

}  // namespace kvscope::trace
