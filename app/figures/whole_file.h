#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kvscope::figures {

struct OutputExists : std::runtime_error {
    explicit OutputExists(const std::filesystem::path& path);
    std::string path;
};

/// The file cannot be written: the folder is missing or read-only, the disk is full, …
struct OutputFailed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

void refuse_existing(const std::filesystem::path& path);

/// Writes a temporary file next to `path`, syncs and renames it. A killed program or full disk leaves the old file
/// unchanged.
/// @throws OutputExists, OutputFailed
void write_whole_file(const std::filesystem::path& path, std::string_view bytes, bool replace);

}  // namespace kvscope::figures
