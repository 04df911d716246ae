#include "engine/files/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/files/checkpoint_error.h"

namespace kvscope::checkpoint {

FileReader::FileReader(std::filesystem::path path)
    : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (descriptor_ < 0) throw CheckpointError(path_, std::string("cannot be opened: ") + std::strerror(errno));
    struct stat status {};
    const bool known = ::fstat(descriptor_, &status) == 0;
    const int error = errno;
    if (!known || !S_ISREG(status.st_mode)) {
        ::close(descriptor_);
        throw CheckpointError(
            path_, known ? "is not a regular file" : std::string("cannot be examined: ") + std::strerror(error));
    }
    size_ = static_cast<uint64_t>(status.st_size);
}

FileReader::~FileReader() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

FileReader::FileReader(FileReader&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

void FileReader::read_at(uint64_t offset, std::span<std::byte> out) const {
    constexpr size_t largest_read = size_t{1} << 30;
    size_t done = 0;
    while (done < out.size()) {
        const size_t want = std::min(out.size() - done, largest_read);
        const ssize_t got = ::pread(descriptor_, out.data() + done, want, static_cast<off_t>(offset + done));
        if (got > 0) {
            done += static_cast<size_t>(got);
        } else if (got == 0) {
            throw CheckpointError(path_, "ends at byte " + std::to_string(offset + done) + ", expected " +
                                             std::to_string(out.size() - done) + " more bytes there");
        } else if (errno != EINTR) {
            throw CheckpointError(
                path_, "cannot be read at byte " + std::to_string(offset + done) + ": " + std::strerror(errno));
        }
    }
}

std::string read_text_file(const std::filesystem::path& path, uint64_t limit) {
    const FileReader file(path);
    if (file.size() > limit) {
        throw CheckpointError(
            path, "has " + std::to_string(file.size()) + " bytes, expected at most " + std::to_string(limit));
    }
    std::string text(file.size(), '\0');
    file.read_at(0, std::as_writable_bytes(std::span<char>(text)));
    return text;
}

}  // namespace kvscope::checkpoint
