// An HDF5 file being written, which a full disk cannot break.
//
// HDF5 1.10 may crash while closing a file whose writes fail. Here it writes through a driver that
// keeps the first error to itself and lets HDF5 believe that all is well; close() then reports it.
#pragma once

#include <hdf5.h>

#include <filesystem>
#include <memory>

#include "trace/hdf5.h"
#include "trace/trace_errors.h"

namespace kvscope::trace {

class OutputFile {
 public:
    /// Creates or empties `path`. Throws WriteFailed. The caller holds a h5::Guard, and while `id` is used.
    explicit OutputFile(std::filesystem::path path);
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    /// Removes the file unless commit() has succeeded.
    ~OutputFile();

    [[nodiscard]] hid_t id() const { return file_.get(); }
    /// Throws WriteFailed if a write has failed so far: no use in preparing more.
    void require_healthy() const;
    /// Flushes and closes the HDF5 file. Throws WriteFailed. The caller holds a h5::Guard.
    void close();
    /// Of a closed file: syncs to the disk and renames to `target`. Throws WriteFailed. A disk takes its time: the
    /// caller holds no h5::Guard, for which a window may wait.
    void commit(const std::filesystem::path& target);

    struct Disk;

 private:
    std::filesystem::path path_;
    std::unique_ptr<Disk> disk_;
    h5::Handle file_;
    bool committed_ = false;
};

/// Writes a small file whole: temporary file, sync, rename. Throws WriteFailed.
void write_file(const std::filesystem::path& target, std::string_view contents);
/// Makes renames in `folder` durable. Throws WriteFailed.
void sync_folder(const std::filesystem::path& folder);

}  // namespace kvscope::trace
