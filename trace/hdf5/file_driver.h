// Shared parts of the HDF5 file drivers for reading and for writing.
#pragma once

#include <hdf5.h>

#include <cstddef>

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

namespace kvscope::trace {

/// An open file. The struct of each driver begins with a DriverFile.
struct DriverFile {
    H5FD_t base;  ///< must be the first member, as HDF5 requires
    int descriptor;
    haddr_t length;  ///< the file length reported to HDF5
    haddr_t end_of_allocation;
};

/// Returns a driver class without `open`, `close`, `read` and `write`. HDF5's own drivers have smaller numbers.
[[nodiscard]] H5FD_class_t make_file_driver_class(const char* name, int number);

/// Reads `size` bytes. Returns 0, or errno on failure. Bytes past the file's end read as 0, as in HDF5's own driver.
[[nodiscard]] int read_bytes_at_address(int descriptor, haddr_t address, std::size_t size, void* buffer);

}  // namespace kvscope::trace
