// Joins the parts of a finished trace into one file.
#pragma once

#include <hdf5.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "trace/part_folder.h"

namespace kvscope::trace {

/// Identity of a file, which changes if another file takes its name.
struct FileIdentity {
    dev_t device = 0;
    ino_t inode = 0;
    off_t bytes = 0;
    std::int64_t modified_ns = 0;
    [[nodiscard]] bool operator==(const FileIdentity&) const = default;
};
/// Returns the identity of the file at `path` after links are resolved, or nullopt if there is no file.
[[nodiscard]] std::optional<FileIdentity> read_file_identity(const std::filesystem::path& path);

/// Reads a data set once. A copy of packed chunks would also copy damage. Throws h5::Failure, DamagedTrace.
void require_readable_data_set(hid_t file, const std::string& path);

/// Joins the parts in `folder` into one file, syncs it, and renames it to `output` with complete = 1. The caller holds
/// the folder's lock but no h5::Guard. `replaced` is the identity that the file at `output` had when the caller began.
/// Throws OutputExists if `output` has changed since; std::invalid_argument if numbers have gaps or the model is
/// missing; WriteFailed; ReadFailed if a part cannot be read now; DamagedTrace if a damaged part was set aside.
void join_parts(const std::filesystem::path& folder, const std::filesystem::path& output,
                const std::optional<FileIdentity>& replaced);

}  // namespace kvscope::trace
