#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kvscope::figures {

/// A file that was not to be replaced.
struct OutputExists : std::runtime_error {
    explicit OutputExists(const std::filesystem::path& path);
    std::string path;
};

/// The folder is missing or not writable, the disk is full, …
struct OutputFailed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// @throws OutputExists when something is at `path`.
void refuse_existing(const std::filesystem::path& path);

/// Writes to a temporary file beside `path`, syncs it and moves it there, so that a killed program or a full disk
/// leaves what was there before. Without `replace` a file that appeared meanwhile stays, too.
/// @throws OutputExists, OutputFailed.
void write_whole_file(const std::filesystem::path& path, std::string_view bytes, bool replace);

}  // namespace kvscope::figures
