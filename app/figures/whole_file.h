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

/// Reports a file that cannot be written, such as for a missing folder or a full disk.
struct OutputFailed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

void refuse_existing(const std::filesystem::path& path);

/// Writes the file completely or not at all. @throws OutputExists, OutputFailed
void write_whole_file(const std::filesystem::path& path, std::string_view bytes, bool replace);

}  // namespace kvscope::figures
