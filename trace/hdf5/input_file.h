// Opens HDF5 files for reading so that damaged contents cannot crash the program. HDF5 1.10 trusts text lengths in
// global heaps and may read outside its buffers, so this driver checks each heap. Checksums protect the other contents.
#pragma once

#include <filesystem>
#include <optional>

#include "trace/hdf5/hdf5.h"

namespace kvscope::trace {

/// Opens a file for reading. Takes no file lock, so network file systems work. Throws h5::Failure.
[[nodiscard]] h5::Handle open_input_file(const std::filesystem::path& path);

/// Returns the descriptor of a file that open_input_file() opened, and nullopt for other files.
[[nodiscard]] std::optional<int> descriptor_of_input(hid_t file);

}  // namespace kvscope::trace
