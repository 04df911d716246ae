#include "common/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "common/blocked_signals.h"

namespace kvscope {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* doing, int error) {
    const char* help = error == ENOSPC || error == EDQUOT ? "; free some space and try again"
                       : error == EFBIG                   ? "; the file exceeds the size limit (ulimit -f)"
                                                          : "";
    throw FileNotWritten(fmt::format("{}: {} failed: {}{}", path.string(), doing, std::strerror(error), help), error);
}

void write_all(int file, std::string_view bytes, const std::filesystem::path& path) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(file, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail(path, "writing", errno);
        bytes.remove_prefix(static_cast<size_t>(n));
    }
}

bool is_special(const struct stat& status) {
    return !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode) && !S_ISLNK(status.st_mode);
}

void write_special(const std::filesystem::path& path, std::span<const std::string_view> parts) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0) fail(path, "opening", errno);
    try {
        for (const std::string_view part : parts) write_all(file, part, path);
    } catch (...) {
        ::close(file);
        throw;
    }
    if (::close(file) != 0) fail(path, "writing", errno);
}

}  // namespace

FileExists::FileExists(const std::filesystem::path& existing)
    : std::runtime_error(fmt::format("{}: the file already exists and was not replaced", existing.string())),
      path(existing.string()) {}

void refuse_existing(const std::filesystem::path& path) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0 || is_special(status)) return;
    struct stat target {};
    if (S_ISLNK(status.st_mode) && ::stat(path.c_str(), &target) == 0 && is_special(target)) return;  // /dev/stdout
    throw FileExists(path);
}

TemporaryFile::TemporaryFile(const std::filesystem::path& target) : target_(target) {
    for (int attempt = 0; file_ < 0; ++attempt) {
        path_ = target;
        constexpr size_t longest = 200;  // bytes; file systems allow 255
        std::string name = target.filename().string();
        if (name.size() > longest) name = "kvscope";
        path_.replace_filename(fmt::format(".{}.{}-{}.tmp", name, ::getpid(), attempt));
        file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file_ >= 0) break;
        const int error = errno;
        if (error == EEXIST && attempt < 100) continue;
        path_.clear();
        std::error_code ignored;
        const auto folder = target.has_parent_path() ? target.parent_path() : std::filesystem::path(".");
        const bool may_be_refused = error == ENOENT || error == EACCES || error == EPERM || error == EROFS;
        if (may_be_refused && std::filesystem::is_directory(folder, ignored))
            throw FileNotWritten(fmt::format("{}: no file can be created in {} ({}); choose another folder",
                                             target.string(), folder.string(), std::strerror(error)),
                                 error);
        if ((error == ENOENT || error == ENOTDIR) && !std::filesystem::is_directory(folder, ignored))
            throw FileNotWritten(
                fmt::format("{} cannot be written: there is no folder {}", target.string(), folder.string()), error);
        fail(target, "creating a temporary file next to it", error);
    }
}

TemporaryFile::~TemporaryFile() {
    if (file_ >= 0) ::close(file_);
    if (!path_.empty()) ::unlink(path_.c_str());
}

void TemporaryFile::write(std::string_view bytes) { write_all(file_, bytes, target_); }

void TemporaryFile::move_into_place(bool replace) {
    if (::fsync(file_) != 0) fail(target_, "writing", errno);
    const int file = file_;
    file_ = -1;
    if (::close(file) != 0) fail(target_, "writing", errno);
    if (!replace) {
        // Unlike a rename, a hard link never replaces a file. Without hard links, a check must precede the rename.
        if (::link(path_.c_str(), target_.c_str()) == 0) return;
        refuse_existing(target_);
    }
    if (::rename(path_.c_str(), target_.c_str()) != 0) fail(target_, "moving the finished file to its place", errno);
    path_.clear();
}

void write_whole_file(const std::filesystem::path& path, std::span<const std::string_view> parts, bool replace) {
    struct stat status {};
    const bool exists = ::stat(path.c_str(), &status) == 0;
    if (exists && S_ISDIR(status.st_mode)) fail(path, "writing a file", EISDIR);
    if (exists && is_special(status)) {
        write_special(path, parts);
        return;
    }
    const BlockedSignals blocked{SIGINT, SIGTERM, SIGHUP, SIGALRM, SIGXFSZ};
    // If the path is a link, its target is replaced and the link stays.
    TemporaryFile file(exists && replace ? std::filesystem::canonical(path) : path);
    for (const std::string_view part : parts) file.write(part);
    file.move_into_place(replace);
}

void write_whole_file(const std::filesystem::path& path, std::string_view bytes, bool replace) {
    write_whole_file(path, {&bytes, 1}, replace);
}

}  // namespace kvscope
