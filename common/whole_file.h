#pragma once

#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kvscope {

struct FileExists : std::runtime_error {
    explicit FileExists(const std::filesystem::path& path);
    std::string path;
};

/// Reports a file that cannot be written, such as for a missing folder or a full disk.
struct FileNotWritten : std::runtime_error {
    explicit FileNotWritten(const std::string& message, int code = 0) : std::runtime_error(message), error(code) {}
    int error;  ///< errno
};

/// @throws FileExists
void refuse_existing(const std::filesystem::path& path);

/// A temporary file in the target's folder, which becomes the target when it is complete. Its name ends in ".tmp".
class TemporaryFile {
 public:
    /// All functions throw FileNotWritten.
    explicit TemporaryFile(const std::filesystem::path& target);
    /// Removes the temporary file unless it has become the target.
    ~TemporaryFile();
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    void write(std::string_view bytes);
    /// Syncs the file, then renames it. @throws FileExists unless `replace`
    void move_into_place(bool replace);

 private:
    std::filesystem::path target_;
    std::filesystem::path path_;
    int file_ = -1;
};

/// Writes a regular file completely or not at all. If `path` is a link, replaces its target. @throws FileExists,
/// FileNotWritten
void write_whole_file(const std::filesystem::path& path, std::span<const std::string_view> parts, bool replace);
void write_whole_file(const std::filesystem::path& path, std::string_view bytes, bool replace);

}  // namespace kvscope
