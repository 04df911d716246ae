// The parts of a finished trace into one file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>

#include "trace/part_folder.h"

namespace kvscope::trace {

/// Tells one file from another that takes its name.
struct FileIdentity {
    dev_t device = 0;
    ino_t inode = 0;
    off_t bytes = 0;
    std::int64_t modified_ns = 0;
    bool operator==(const FileIdentity&) const = default;
};
/// Of the file at a path, or of the one that a link there names; nothing where there is none.
std::optional<FileIdentity> identity_of(const std::filesystem::path& path);

/// Joins the parts of `folder` into a file within it, synced and then renamed to `output` with complete = 1. The caller
/// holds the folder's lock and no h5::Guard, which is taken for one part at a time.
/// @param replaced the file that the caller found at `output` when it began
/// Throws OutputExists where another file is at `output` by now; std::invalid_argument where numbers have gaps or the
/// model is missing; WriteFailed; ReadFailed for a part that cannot be read now; DamagedTrace for one that was damaged
/// since, which was set aside.
void join_parts(const std::filesystem::path& folder, const std::filesystem::path& output,
                const std::optional<FileIdentity>& replaced);

}  // namespace kvscope::trace
