// An HDF5 file being read, which damage in it cannot turn into a crash.
//
// HDF5 1.10 trusts the global heap, where texts of variable length lie, and is led outside its
// buffers by wrong lengths in it; all its other structures carry checksums in the files that kvscope
// writes. Here it reads through a driver that looks at each heap first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "trace/hdf5.h"

namespace kvscope::trace {

/// Opens for reading, without locks, so that network file systems do not matter. Throws h5::Failure.
h5::Handle open_input_file(const std::filesystem::path& path);

/// Whether a collection of the global heap is as the HDF5 file format (III.E) says: `collection` is all
/// of it, from the signature on.
bool is_sound_global_heap(std::span<const unsigned char> collection);

}  // namespace kvscope::trace
