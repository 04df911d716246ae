// Writes HDF5 files so that a full disk cannot crash the program. HDF5 1.10 may crash when it closes a file after a
// failed write, so this driver hides failed writes from HDF5, and close() reports them.
#pragma once

#include <hdf5.h>

#include <filesystem>
#include <memory>

#include "trace/hdf5/hdf5.h"
#include "trace/records/trace_errors.h"

namespace kvscope::trace {

class OutputFile {
 public:
    /// Creates or empties the file `path`. Throws WriteFailed. Requires an h5::Guard here and for id().
    explicit OutputFile(std::filesystem::path path);
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    /// Removes the file unless commit() has succeeded.
    ~OutputFile();

    [[nodiscard]] hid_t id() const { return file_.get(); }
    void require_healthy() const;
    /// Flushes and closes the HDF5 file. Throws WriteFailed. The caller must hold an h5::Guard.
    void close();
    /// Syncs the closed file and renames it to `target`. A sync takes long: hold no h5::Guard. Throws WriteFailed.
    void commit(const std::filesystem::path& target);

    struct Disk;

 private:
    std::filesystem::path path_;
    std::unique_ptr<Disk> disk_;
    h5::Handle file_;
    bool committed_ = false;
};

/// Writes a temporary file, syncs it and renames it to `target`. For small files. Throws WriteFailed.
void write_small_file_atomically(const std::filesystem::path& target, std::string_view contents);
/// Syncs `folder` so that earlier renames in it survive a crash. Throws WriteFailed.
void sync_folder(const std::filesystem::path& folder);

}  // namespace kvscope::trace
