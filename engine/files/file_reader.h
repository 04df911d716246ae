#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace kvscope::checkpoint {

/// A regular file for reading. It is not mapped into memory, because truncated files would then cause signals.
class FileReader {
 public:
    explicit FileReader(std::filesystem::path path);
    ~FileReader();
    FileReader(FileReader&& other) noexcept;
    FileReader& operator=(FileReader&&) = delete;
    FileReader(const FileReader&) = delete;
    FileReader& operator=(const FileReader&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] uint64_t size() const { return size_; }

    /// Fills `out` from `offset`. Thread-safe. @throws CheckpointError if the file is too short or unreadable
    void read_at(uint64_t offset, std::span<std::byte> out) const;

 private:
    std::filesystem::path path_;
    int descriptor_ = -1;
    uint64_t size_ = 0;
};

/// @throws CheckpointError if the file cannot be read or is longer than `limit` bytes
[[nodiscard]] std::string read_text_file(const std::filesystem::path& path, uint64_t limit = uint64_t{1} << 30);

}  // namespace kvscope::checkpoint
