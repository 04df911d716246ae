#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kvscope::figures {

/// The file exists and must not be replaced.
struct OutputExists : std::runtime_error {
    explicit OutputExists(const std::filesystem::path& path);
    std::string path;
};

/// The file cannot be written: the folder is missing or read-only, the disk is full, …
struct OutputFailed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// @throws OutputExists if something exists at `path`
void refuse_existing(const std::filesystem::path& path);

/// Writes to a temporary file next to `path`, syncs it and renames it, so that a killed program or a full disk leaves
/// the old file unchanged. Without `replace`, a file that appeared in the meantime also stays.
/// @throws OutputExists, OutputFailed
void write_whole_file(const std::filesystem::path& path, std::string_view bytes, bool replace);

}  // namespace kvscope::figures
